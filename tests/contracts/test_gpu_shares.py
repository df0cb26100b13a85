"""Trials share declared GPUs: as many at a time as their shares allow, and no more."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweep.local import LocalExecutor
from sweep.schedule import FixedSchedule

sys.path.insert(0, str(Path(__file__).parent))  # worker processes import the made-up jobs, too
import executor_fakes as fakes
from test_executors_contract import RAY, Notes

WORKER = "executor_fakes:start"


@pytest.fixture
def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Jobs that say "meet" end when two of them are there at the same time; counts the pairs."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
    pairs: list[int] = []
    server = socket.create_server(("127.0.0.1", 0))
    (tmp_path / "port").write_text(str(server.getsockname()[1]))

    def serve() -> None:
        while True:
            lines = []
            try:
                lines = [server.accept()[0] for _ in range(2)]
            except OSError:
                return
            pairs.append(len(lines))
            for line in lines:
                line.send(b".")
                line.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield pairs
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def most_at_once(store: Path, shares: dict[str, float]) -> float:
    """The largest sum of shares of jobs that were under way together, by the order of the log."""
    running: dict[str, float] = {}
    most = 0.0
    for line in Path(store, "log").read_text().splitlines():
        what, name, *_ = line.split()
        if what == "start":
            running[name] = shares[name]
        elif what == "commit":
            del running[name]
        most = max(most, sum(running.values()))
    return most


def mixed(store: Path) -> tuple[dict[str, float], FixedSchedule]:
    """Two jobs of half a GPU that must meet, one that wants all of it, and two small ones."""
    shares = {"a": 0.5, "b": 0.5, "whole": 1.0, "c": 0.25, "d": 0.25}
    jobs = [
        fakes.job(store, name, "meet" if name in "ab" else "succeed", gpus=share)
        for name, share in shares.items()
    ]
    return shares, FixedSchedule(jobs)


@pytest.mark.slow
def test_the_pool_fills_a_gpu_and_no_more(tmp_path: Path, meeting: list[int]) -> None:
    """Halves run together, a whole share runs alone, and every job is done."""
    shares, schedule = mixed(tmp_path)
    LocalExecutor(3, worker=WORKER).run(schedule, Notes())
    assert {outcome.status for outcome in schedule.ended.values()} == {"done"}
    assert most_at_once(tmp_path, shares) == 1.0
    assert meeting == [2]


@pytest.fixture
def _gpus() -> Iterator[None]:
    """A Ray that believes in one GPU."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        patch.setenv("PYTHONPATH", path)
        ray.init(num_cpus=8, num_gpus=1, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.mark.usefixtures("_gpus")
@pytest.mark.parametrize("kind", [pytest.param("tune", marks=RAY)])
def test_tune_fills_a_gpu_and_no_more(tmp_path: Path, meeting: list[int], kind: str) -> None:
    """The same through Ray, where each job has a share of its own and knows its GPU."""
    from sweep.tune import TuneExecutor

    shares, schedule = mixed(tmp_path)
    TuneExecutor(workers=4, cpus=1.0, worker=WORKER).run(schedule, Notes())
    assert kind == "tune"
    assert {name: outcome.message for name, outcome in schedule.ended.items()} == dict.fromkeys(
        shares, ""
    )
    assert most_at_once(tmp_path, shares) == 1.0
    assert meeting == [2]
    assert sorted(name for name, *_ in fakes.lines(tmp_path, "gpu=0")) == ["a", "b"]
