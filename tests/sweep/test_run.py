"""A whole run: what is left is run, committed, compacted, counted, whatever happens on the way."""

import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pyarrow as pa
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))  # worker processes import the made-up jobs, too
import run_samples as made

from sweep.complaints import StudyError
from sweep.jobs import jobs_left
from sweep.ledger import Ledger
from sweep.local import LocalExecutor
from sweep.lock import DriverLock, StoreLockedError
from sweep.opened import open_study
from sweep.run import RunSummary, _crew, default_workers, run_study
from sweep.storage import Store
from sweep.study import Study


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Find made-up files instead of real ones, and keep caches in the test's own folder."""
    monkeypatch.setattr("sweep.opened.resolve", made.resolve)
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def run(study: Study, workers: int = 1, **options) -> tuple[RunSummary, str]:
    """Run a study; its summary and what it said."""
    console = Console(file=io.StringIO(), width=200)
    summary = run_study(study, workers=workers, console=console, worker=made.WORKER, **options)
    return summary, console.file.getvalue()  # type: ignore[attr-defined] # it is a StringIO


def test_runs_what_is_left_and_then_nothing(tmp_path: Path) -> None:
    """The first run does all trials once, probe first; the second runs none."""
    study = made.study_of(tmp_path, [1, 2])
    summary, said = run(study)
    assert (summary.total, summary.already, summary.done, summary.left) == (5, 0, 5, 0)
    assert summary.is_complete
    assert len(made.runs(tmp_path)) == len(set(made.runs(tmp_path))) == 5
    assert "[5/5] done" in said
    again, said = run(study)
    assert (again.already, again.done) == (5, 0)
    assert again.is_complete
    assert len(made.runs(tmp_path)) == 5
    assert said == ""


def test_a_new_seed_runs_only_that_seed(tmp_path: Path) -> None:
    """Adding a seed to a finished study runs its trials and no others."""
    run(made.study_of(tmp_path, [1]))
    before = made.runs(tmp_path)
    summary, _ = run(made.study_of(tmp_path, [1, 2]))
    assert (summary.already, summary.done) == (3, 2)
    assert len(made.runs(tmp_path)) == len(before) + 2


def test_a_new_target_asks_only_for_that_target(tmp_path: Path) -> None:
    """A new language makes one job a trained trial, under an id of its own, for that language."""
    run(made.study_of(tmp_path, [1]))
    targets = {"targets": ["en", "fr", "de"], "naming": "{lang}_pud"}
    summary, _ = run(made.study_of(tmp_path, [1], evaluate=targets))
    assert (summary.already, summary.done) == (1, 2)
    late = made.runs(tmp_path)[3:]
    assert [len(job.partition("+")[2]) for job in late] == [16, 16]
    scores = Ledger(str(tmp_path)).table("scores").filter(pa.compute.field("split") == "test")
    assert sorted(scores.column("language").to_pylist()) == sorted(["en", "fr", "de"] * 2)


def test_failures_are_counted_and_tried_again_next_time(tmp_path: Path) -> None:
    """A failed trial leaves the others alone, is counted by kind, and is left to do."""
    study = made.study_of(tmp_path, [7, 1])
    summary, said = run(study)
    assert summary.failed == {"user": 2}
    assert (summary.done, summary.left) == (3, 0)
    assert not summary.is_complete
    assert {failure.message for failure in summary.failures} == {"no such thing"}
    assert said.count("no such thing") == 2
    again, _ = run(study)
    assert (again.already, again.failed) == (3, {"user": 2})


def test_everything_committed_is_compacted(tmp_path: Path) -> None:
    """After a run no single commit lies about, and the tables hold them all."""
    run(made.study_of(tmp_path, [1, 2]))
    assert list((tmp_path / "commits").glob("*/*.parquet")) == []
    assert Ledger(str(tmp_path)).table("trials").num_rows == 5


def test_what_a_killed_driver_left_is_tidied_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to run, but commits lie about: they are shown and compacted."""
    with monkeypatch.context() as patch:
        patch.setattr("sweep.run.Housekeeper.finish", lambda _: None)  # dies before it
        run(made.study_of(tmp_path, [1]))
    assert list((tmp_path / "commits").glob("*/*.parquet")) != []
    summary, _ = run(made.study_of(tmp_path, [1]))
    assert (summary.already, summary.done) == (3, 0)
    assert list((tmp_path / "commits").glob("*/*.parquet")) == []


def test_the_study_is_stored_as_understood(tmp_path: Path) -> None:
    """The store keeps the study with every default, and the ids of its trials."""
    run(made.study_of(tmp_path, [1]))
    folder = tmp_path / "studies" / "made-up"
    assert json.loads((folder / "study.json").read_text())["resources"]["cpus"] == 1
    ids = json.loads((folder / "trials.json").read_text())
    assert sorted(ids) == sorted(Ledger(str(tmp_path)).table("trials")["trial_id"].to_pylist())


@pytest.mark.parametrize("executor", ["local", "tune"])
def test_a_study_that_wants_a_gpu_is_refused_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Literal["local", "tune"]
) -> None:
    """It would fail trial by trial, or wait inside Ray for ever; it says so before it begins."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    study = made.study_of(tmp_path, [1], resources={"gpus": 0.25})
    with pytest.raises(StudyError, match=r"resources\.gpus = 0\.25: torch finds no GPU"):
        run(study, executor=executor)
    assert made.runs(tmp_path) == []


@pytest.mark.parametrize(
    ("visible", "gpus", "is_said"),
    [(None, 0.0, True), ("", 0.0, False), ("0", 0.0, True), (None, "auto", False)],
)
def test_a_gpu_that_would_lie_idle_is_pointed_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    visible: str | None,
    gpus: float | str,
    is_said: bool,
) -> None:
    """Unless it is hidden on purpose, or asked for."""
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr("sweep.run.CARDS", (tmp_path, "nvidia[0-9]*"))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    study = made.study_of(tmp_path / "store", [1], resources={"gpus": gpus})
    _, said = run(study)
    assert ("A GPU is here" in said) == is_said
    (tmp_path / "nvidia0").unlink()
    assert "A GPU" not in run(made.study_of(tmp_path / "other", [1]))[1]


@pytest.mark.parametrize(
    ("cpus", "gpus", "n_gpus", "expected"),
    [
        (1, 0.0, 0, 8),
        (3, 0.0, 0, 2),
        (16, 0.0, 0, 1),
        (1, 0.25, 1, 4),
        (1, 0.5, 2, 4),
        (2, 1, 8, 4),
    ],
)
def test_a_machine_is_filled_and_not_overfilled(
    monkeypatch: pytest.MonkeyPatch, cpus: float, gpus: float, n_gpus: int, expected: int
) -> None:
    """As many trials as all GPUs and all threads hold, whichever is less; at least one."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert default_workers(cpus, gpus, n_gpus) == expected


def test_a_fraction_of_a_core_is_a_share_of_tune_and_one_thread(tmp_path: Path) -> None:
    """Half a core lets Tune pack two trials on it; each has one thread, in its job too."""
    from sweep.tune import TuneExecutor  # ray: seconds

    study = made.study_of(tmp_path, [1], resources={"cpus": 0.5})
    crew = _crew(study, "tune", 4, made.WORKER, 9, mark="a driver")
    assert isinstance(crew, TuneExecutor)
    assert (crew.workers, crew.cpus, crew.threads) == (4, 0.5, 1)
    (job, *_) = jobs_left(open_study(study))
    assert job.workspace.threads == 1


def test_a_trial_gets_one_gpu_at_most(tmp_path: Path) -> None:
    """A trial computes on one device; what it cannot use is refused by name."""
    with pytest.raises(StudyError, match=r"resources\.gpus = 1\.5"):
        made.study_of(tmp_path, [1], resources={"gpus": 1.5})
    with pytest.raises(StudyError, match=r'resources\.gpus = "half".*or "auto"'):
        made.study_of(tmp_path, [1], resources={"gpus": "half"})
    assert made.study_of(tmp_path, [1], resources={"gpus": "auto"}).resources.least_gpus == 0.125


def test_a_second_driver_is_refused(tmp_path: Path) -> None:
    """While a driver holds the store, another one stops before it runs anything."""
    with DriverLock(Store(str(tmp_path))), pytest.raises(StoreLockedError):
        run(made.study_of(tmp_path, [1]))
    assert made.runs(tmp_path) == []


class Window:
    """Takes two trials at a time, shows none, and notes how long it was given at the end."""

    room, behind, is_silent = 2, 0, False
    patience: list[float] = []  # noqa: RUF012 - emptied by the test that reads it

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, _: object) -> None:
        """Take no notice."""

    def close(self, timeout: float = 30.0) -> None:
        """Nothing to close."""
        self.patience.append(timeout)


def test_a_window_that_breaks_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever tracking does, the study is done and said to be done."""

    class Broken(Window):
        def submit(self, _: object) -> None:
            raise RuntimeError("no window here")

    monkeypatch.setattr("sweep.tracking.Tracker", Broken)
    summary, said = run(made.study_of(tmp_path, [1]), track=True)
    assert summary.is_complete
    assert "no window here" in said
    assert "sweep track" in said


def test_every_trial_of_the_study_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each committed trial goes there, those of earlier runs included, as fast as it is taken."""
    shown: list[list[str]] = []

    class Noting(Window):
        def submit(self, rows) -> None:
            shown.append(rows.trials["trial_id"].to_pylist())

    run(made.study_of(tmp_path, [1]))
    monkeypatch.setattr("sweep.tracking.Tracker", Noting)
    run(made.study_of(tmp_path, [1, 2]), track=True)
    known = Ledger(str(tmp_path)).table("trials")["trial_id"].to_pylist()
    assert sorted(itertools.chain(*shown)) == sorted(known)
    assert {len(batch) for batch in shown} <= {1, 2}


def test_trials_that_a_silent_window_does_not_take_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run does not wait for a dead server; it says how many trials are not there."""

    class Silent(Window):
        room, is_silent = 0, True

    monkeypatch.setattr("sweep.tracking.Tracker", Silent)
    summary, _ = run(made.study_of(tmp_path, [1, 2]), track=True)
    assert (summary.done, summary.untracked) == (5, 5)


@pytest.mark.parametrize(("a_look", "waits"), [(100, False), (8000, True)])
def test_a_run_waits_for_a_window_only_if_that_will_do(
    a_look: int, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a pace that needs minutes, `sweep track` is asked for at once and not half a minute on."""
    clock = itertools.count(0.0, 0.2)

    class Slow(Window):
        room, left = 0, 100_000

        @property
        def behind(self) -> int:
            Slow.left = max(0, self.left - a_look)
            Slow.room = 9 if not self.left else 0
            return self.left

    monkeypatch.setattr("sweep.tracking.Tracker", Slow)
    fake = SimpleNamespace(sleep=lambda _: None, monotonic=lambda: next(clock))
    monkeypatch.setattr("sweep.housekeeping.time", fake)
    Window.patience.clear()
    summary, _ = run(made.study_of(tmp_path, [1, 2]), track=True)
    assert summary.untracked == (0 if waits else 5)
    assert (Window.patience[0] > 20) == waits


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_gets_a_row(tmp_path: Path) -> None:
    """A worker that is killed cannot commit why; the driver does it in its place."""
    study = made.study_of(tmp_path, [8, 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sweep.run.FixedSchedule", _impatient())
        summary, _ = run(study, executor=LocalExecutor(2, worker=made.WORKER))
    assert summary.failed == {"preempted": 2}
    assert summary.done == 3
    failures = Ledger(str(tmp_path)).failures()
    assert [failure.kind for failure in failures] == ["preempted", "preempted"]
    assert all("SIGKILL" in failure.message for failure in failures)


def _impatient() -> object:
    from functools import partial

    from sweep.schedule import FixedSchedule

    return partial(FixedSchedule, max_lost=2)


DRIVER = """
import os, pathlib, sys
import run_samples as made
import sweep.opened
from sweep.run import Interrupted, run_study
sweep.opened.resolve = made.resolve
if __name__ == "__main__":
    store, workers = sys.argv[1:]
    pathlib.Path(store, "driver").write_text(str(os.getpid()))
    try:
        run_study(made.study_of(store, [1, 9, 2, 3]), workers=int(workers), worker=made.WORKER)
    except Interrupted as stop:
        print(stop.summary.done, stop.summary.left)
        sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path, workers: int) -> None:
    """After SIGINT the finished trials are committed and counted; the rest runs the next time."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    stopped = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(workers)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "run the same command again" in stopped.stderr
    done, left = map(int, stopped.stdout.split())
    assert done + left == 9
    assert done >= 3
    assert left >= 4
    (tmp_path / "driver").unlink()
    before = len(made.runs(tmp_path))
    summary, _ = run(made.study_of(tmp_path, [1, 9, 2, 3]), workers=workers)
    assert (summary.already, summary.done) == (done, left)
    assert len(made.runs(tmp_path)) == before + left
