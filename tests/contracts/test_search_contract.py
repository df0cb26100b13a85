"""A study that searches, through every executor: the same trials, the same winners."""

import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sweep.executor import Executor
from sweep.ledger import Ledger
from sweep.local import LocalExecutor
from sweep.opened import open_study
from sweep.run import run_study

SAMPLES = str(Path(__file__).parents[1] / "sweep")
sys.path.insert(0, SAMPLES)  # worker processes import the made-up jobs, too
import run_samples  # noqa: E402 - from there
import search_samples as made  # noqa: E402 - from there

# Ray leaves sockets and log files to the garbage collector, and forks while threads run.
RAY = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
EVERY = [
    "here",
    pytest.param("pool", marks=pytest.mark.slow),
    pytest.param("tune", marks=RAY),
]


def make(kind: str) -> Executor:
    """An executor of the named kind with the worker of `search_samples`."""
    if kind == "tune":
        from sweep.tune import TuneExecutor

        return TuneExecutor(workers=2, worker=made.WORKER, grace_s=10)
    return LocalExecutor(workers=1 if kind == "here" else 2, worker=made.WORKER, grace_s=10)


@pytest.mark.parametrize("kind", EVERY)
def test_a_search_goes_through_every_executor(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve points and six reported trials, each run once; pruned ones are told as pruned."""
    monkeypatch.setattr("sweep.opened.resolve", made.resolve)
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SAMPLES, os.environ.get("PYTHONPATH", "")]))
    study = made.study_of(tmp_path, made.GRID | {"prune": "asha", "reduction": 2})
    console = Console(file=io.StringIO(), width=200)
    summary = run_study(study, executor=make(kind), console=console)
    assert summary.is_complete
    runs = run_samples.runs(tmp_path)
    assert len(runs) == len(set(runs)) == summary.total == 18
    assert summary.pruned > 0
    rows = Ledger(str(tmp_path)).table("trials").to_pylist()
    assert sum(row["status"] == "pruned" for row in rows) == summary.pruned
    layout = open_study(study).layout
    assert layout is not None
    winner = {"learning_rate": 1e-3, "batch_size": 16}
    assert [search.winner for search in layout.searches] == [winner, winner]
