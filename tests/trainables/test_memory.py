import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from trainables.memory import cap, mps_pipes, peak, restart_peak
from trainables.rehearsal import rehearse
from trainables.trial import run_trial


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux starts the peak anew")
def test_the_peak_is_that_of_the_trial_and_not_of_the_process():
    """What a trial before took and gave back is not counted; what this one takes is."""
    cpu = torch.device("cpu")
    large = torch.ones(64 * 2**20, dtype=torch.uint8)  # 64 MiB, mapped: freeing gives it back
    before = peak(cpu)
    del large
    restart_peak(cpu)
    now = peak(cpu)
    assert now < before - 32 * 2**20
    again = torch.ones(48 * 2**20, dtype=torch.uint8)
    assert peak(cpu) > now + 32 * 2**20
    del again


@pytest.fixture
def calls(monkeypatch):
    """What is asked of `torch.cuda`, on a made-up card of 16 GiB."""
    calls = []
    card = SimpleNamespace(
        empty_cache=lambda: calls.append("empty"),
        set_per_process_memory_fraction=calls.append,
        get_device_properties=lambda _: SimpleNamespace(total_memory=16 * 2**30),
    )
    monkeypatch.setattr(torch, "cuda", card)
    return calls


@pytest.mark.parametrize(
    ("share", "own"),
    [
        (1.0, 1.0),
        (0.5, 0.5 - 600 / (16 * 1024)),  # its context is paid from its share
        (0.0625, 0.03125),  # but some of it is left to work with
    ],
)
def test_a_trial_is_held_to_its_share(calls, share, own):
    """All shares of a card fit on it with their contexts; what was cached is given back first."""
    cap(torch.device("cuda"), share)
    assert calls == ["empty", own]
    cap(torch.device("cpu"), share)
    assert calls == ["empty", own]


def test_an_mps_daemon_is_seen_by_its_pipes(monkeypatch, tmp_path):
    """No folder, no daemon; a control pipe is one, unless its process is gone."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "mps"))
    assert mps_pipes() is None
    (tmp_path / "mps").mkdir()
    (tmp_path / "mps" / "control").touch()
    assert mps_pipes() == str(tmp_path / "mps")
    pid = tmp_path / "mps" / "nvidia-cuda-mps-control.pid"
    pid.write_text(str(os.getpid()))
    assert mps_pipes() == str(tmp_path / "mps")
    pid.write_text(str(2**22 + 1))  # beyond any pid
    assert mps_pipes() is None


def test_a_rehearsal_measures_and_leaves_nothing(spec, request_all, probe, workspace):
    """It finds a peak for trials and probes alike, and the trial after it has the usual numbers."""
    calm = run_trial(spec, request_all, replace(workspace, checkpoints=workspace.checkpoints + "1"))
    assert rehearse(spec, request_all, workspace) > 2**20
    assert rehearse(probe, request_all, workspace) > 2**20
    assert not Path(workspace.checkpoints).exists()
    after = run_trial(spec, request_all, workspace)
    assert replace(after, facts=None) == replace(calm, facts=None)
