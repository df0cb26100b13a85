"""What goes wrong around a study, by real means: full disks, signals, a window that is shut."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))  # worker processes import the made-up jobs, too
import run_samples as made

from sweep.ledger import Ledger
from sweep.run import RunSummary, run_study
from sweep.storage import StorageError
from sweep.study import Study

DISK = 300_000
"""Bytes of the small disk: some trials' rows, and not those of all."""


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Find made-up files instead of real ones, and keep caches in the test's own folder."""
    monkeypatch.setattr("sweep.opened.resolve", made.resolve)
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def mount(disk: Path, options: str) -> None:
    """Mount a disk of memory, or change one."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mount(folder, f"size={DISK}")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk cannot be mounted here: {error}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=60)


def run(study: Study, **options) -> tuple[RunSummary, str]:
    """Run a study; its summary and what it said."""
    console = Console(file=io.StringIO(), width=200)
    summary = run_study(study, workers=1, console=console, worker=made.WORKER, **options)
    return summary, console.file.getvalue()  # type: ignore[attr-defined] # it is a StringIO


def test_a_disk_that_fills_up_ends_the_sweep_and_loses_nothing(disk: Path) -> None:
    """What was committed stays; the sweep stops after some vain tries, and goes on with room."""
    study = made.study_of(disk, list(range(10, 24)))
    summary, said = run(study)
    assert summary.failed == {"storage": 1}
    assert 0 < summary.done < summary.total - 3
    assert "Free space" in said
    kept = set(Ledger(str(disk)).table("trials").column("trial_id").to_pylist())
    assert len(kept) == summary.done
    tried = len(made.runs(disk))
    assert tried <= summary.done + 4  # no more is spent than shows that nothing fits
    mount(disk, f"remount,size={20 * DISK}")
    again, _ = run(study)
    assert again.already == len(kept)
    assert again.is_complete
    assert len(made.runs(disk)) == tried + again.done


def test_a_disk_that_is_full_or_read_only_is_said_before_anything_is_run(disk: Path) -> None:
    """A store that cannot be written costs no trial, and the message says what to do."""
    study = made.study_of(disk, [1])
    filler = disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(bytes(2 * DISK))
    with pytest.raises(StorageError, match="Free space"):
        run(study)
    filler.unlink()
    mount(disk, "remount,ro")
    with pytest.raises(StorageError, match="read-only"):
        run(study)
    mount(disk, "remount,rw")
    assert made.runs(disk) == []
    assert run(study)[0].is_complete


def test_a_window_that_is_shut_for_the_whole_run_costs_only_itself(tmp_path: Path) -> None:
    """With nobody at the tracking address, every trial is done and committed; it is said once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:  # and nobody listens there afterwards
        port = taken.getsockname()[1]
    tracking = {"enabled": True, "uri": f"http://127.0.0.1:{port}"}
    summary, said = run(made.study_of(tmp_path, [1, 2], tracking=tracking))
    assert summary.is_complete
    assert summary.untracked == summary.total == 5
    assert said.count("sweep track") == 1
    assert len(Ledger(str(tmp_path)).table("trials")) == 5


DRIVER = """
import os, pathlib, sys
import run_samples as made
import sweep.opened
from sweep.run import Interrupted, run_study
sweep.opened.resolve = made.resolve
if __name__ == "__main__":
    pathlib.Path(sys.argv[1], "driver").write_text(f"{sys.argv[3]} SIGTERM".format(
        process=os.getpid(), group=-os.getpgrp()
    ))
    try:
        study = made.study_of(sys.argv[1], [1, 9, 2, 3])
        run_study(study, workers=1, worker=made.WORKER, executor=sys.argv[2])
    except Interrupted as stop:
        print(stop.summary.done, stop.summary.left)
        sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["{process}", "{group}"])
@pytest.mark.parametrize("executor", ["local", pytest.param("tune", marks=pytest.mark.ray)])
def test_sigterm_is_heard_as_ctrl_c_is(tmp_path: Path, executor: str, whom: str) -> None:
    """A batch system's SIGTERM ends the sweep gently: rows committed, the rest left and counted.

    Some send it to the process, some (`timeout`, a shell) to its group.
    """
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    stopped = subprocess.run(
        [sys.executable, str(script), str(tmp_path), executor, whom],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "run the same command again" in stopped.stderr
    done, left = map(int, stopped.stdout.split())
    assert done + left == 9
    assert done >= 3
    assert left >= 4
