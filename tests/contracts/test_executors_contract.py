"""One suite for every executor: what DESIGN §5 promises, with made-up jobs in real processes."""

import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweep.executor import Executor
from sweep.local import LocalExecutor
from sweep.schedule import FixedSchedule
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job

sys.path.insert(0, str(Path(__file__).parent))  # worker processes import the made-up jobs, too
import executor_fakes as fakes

WORKER = "executor_fakes:start"

# Ray leaves sockets and log files to the garbage collector, and forks while threads run.
RAY = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
EVERY = ["here", "pool", pytest.param("tune", marks=RAY)]
WITH_PROCESSES = [
    pytest.param("pool", marks=pytest.mark.slow),
    pytest.param("tune", marks=RAY),
]


class Notes:
    """A watch that writes down what it hears."""

    def __init__(self) -> None:
        self.started_ids: list[str] = []
        self.epochs: list[tuple[str, int]] = []
        self.ends: list[tuple[str, str, str | None, bool]] = []
        self.messages: list[str] = []

    def started(self, job: Job) -> None:
        """Note the job's id."""
        self.started_ids.append(job.job_id)

    def epoch(self, job: Job, point: CurvePoint) -> None:
        """Note the epoch."""
        self.epochs.append((job.job_id, point.epoch))

    def finished(self, job: Job, outcome: Outcome, *, retried: bool) -> None:
        """Note how it ended."""
        self.ends.append((job.job_id, outcome.status, outcome.failure_kind, retried))
        self.messages.append(outcome.message)


class Pruning(FixedSchedule):
    """Asks every trial to stop after its first epoch."""

    def report(self, job: Job, point: CurvePoint) -> bool:  # noqa: ARG002 - protocol
        """Say no."""
        return point.epoch < 1


def make(kind: str, workers: int = 2) -> Executor:
    """An executor of the named kind whose workers run the made-up jobs."""
    if kind == "tune":
        from sweep.tune import TuneExecutor

        return TuneExecutor(workers=workers, worker=WORKER, grace_s=10)
    return LocalExecutor(workers=1 if kind == "here" else workers, worker=WORKER, grace_s=10)


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let worker processes find the made-up jobs."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture(scope="module")
def _cluster() -> Iterator[None]:
    """One Ray for all tests of this file, as each start takes seconds."""
    from sweep.tune import TuneExecutor, connected

    with pytest.MonkeyPatch.context() as patch:
        folder = str(Path(__file__).parent)
        old = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, old]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        with connected(TuneExecutor(workers=2)):
            yield


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """The executor's kind, with its cluster if it needs one."""
    if request.param == "tune":
        request.getfixturevalue("_cluster")
    return str(request.param)


@pytest.mark.parametrize("kind", EVERY, indirect=True)
def test_runs_every_job_once_and_reports_its_epochs(kind: str, tmp_path: Path) -> None:
    """Twenty jobs run exactly once each, and every epoch of each is heard in order."""
    names = [f"job{i:02}" for i in range(20)]
    notes = Notes()
    make(kind).run(FixedSchedule([fakes.job(tmp_path, name) for name in names]), notes)
    assert sorted(name for name, *_ in fakes.lines(tmp_path, "start")) == names
    assert sorted(name for name, *_ in fakes.lines(tmp_path, "commit")) == names
    assert sorted(notes.started_ids) == names
    assert sorted(notes.ends) == [(name, "done", None, False) for name in names]
    assert sorted(notes.epochs) == [(name, epoch) for name in names for epoch in (1, 2)]


@pytest.mark.parametrize("kind", [pytest.param("tune", marks=RAY)], indirect=True)
def test_slots_are_filled_though_jobs_end_before_an_actor_starts(kind: str, tmp_path: Path) -> None:
    """Jobs of a fifth of a second: the second actor, which takes seconds to start, serves, too."""
    jobs = [fakes.job(tmp_path, f"job{i:03}", "nap", epochs=1) for i in range(150)]
    make(kind).run(FixedSchedule(jobs), Notes())
    served = Counter(process for *_, process in fakes.lines(tmp_path, "commit"))
    assert len(served) == 2
    assert min(served.values()) > 30


@pytest.mark.parametrize("kind", [pytest.param("tune", marks=RAY)], indirect=True)
def test_tune_keeps_no_trials_that_have_ended(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 350 jobs, two of which fail, it never looks through more than it was left."""
    from ray.tune.execution.tune_controller import TuneController

    step, lengths = TuneController.step, []

    def watched(self: TuneController) -> None:
        step(self)
        lengths.append(len(self._trials))

    monkeypatch.setattr(TuneController, "step", watched)
    jobs = [fakes.job(tmp_path, f"job{i:03}", epochs=1) for i in range(348)]
    jobs += [fakes.job(tmp_path, f"bad{i}", "user-error") for i in range(2)]
    schedule = FixedSchedule(jobs)
    make(kind).run(schedule, Notes())
    assert Counter(end.status for end in schedule.ended.values()) == {"done": 348, "failed": 2}
    assert max(lengths) > 50
    assert max(lengths) < 110


@pytest.mark.parametrize("kind", EVERY, indirect=True)
def test_keeps_order_with_one_worker(kind: str, tmp_path: Path) -> None:
    """One worker takes the jobs in the order of the schedule."""
    names = ["delta", "alpha", "charlie", "bravo"]
    jobs = [fakes.job(tmp_path, name) for name in names]
    make(kind, workers=1).run(FixedSchedule(jobs), Notes())
    assert [name for name, *_ in fakes.lines(tmp_path, "start")] == names


@pytest.mark.parametrize("kind", EVERY, indirect=True)
def test_a_failing_job_ends_nothing_else(kind: str, tmp_path: Path) -> None:
    """A job that raises is tried as often as allowed and fails; its neighbours are done."""
    jobs = [
        fakes.job(tmp_path, "a"),
        fakes.job(tmp_path, "b", "raise"),
        fakes.job(tmp_path, "c"),
    ]
    schedule = FixedSchedule(jobs, max_attempts=2)
    notes = Notes()
    make(kind).run(schedule, notes)
    statuses = {name: outcome.status for name, outcome in schedule.ended.items()}
    assert statuses == {"a": "done", "b": "failed", "c": "done"}
    assert schedule.ended["b"].failure_kind == "unknown"
    assert "boom" in schedule.ended["b"].message
    assert [end[3] for end in notes.ends if end[0] == "b"] == [True, False]


@pytest.mark.parametrize("kind", EVERY, indirect=True)
def test_retries_follow_the_failure_kind(kind: str, tmp_path: Path) -> None:
    """A user error is not retried; out of memory halves the micro-batch until it fits."""
    jobs = [fakes.job(tmp_path, "u", "user-error"), fakes.job(tmp_path, "m", "memory")]
    schedule = FixedSchedule(jobs)
    make(kind).run(schedule, Notes())
    attempts = [(name, attempt) for name, attempt, _ in fakes.lines(tmp_path, "start")]
    assert [a for a in attempts if a[0] == "u"] == [("u", "1")]
    # 16 -> 8 -> 4, which fits.
    assert [a for a in attempts if a[0] == "m"] == [("m", "1"), ("m", "2"), ("m", "3")]
    assert schedule.ended["m"].status == "done"


@pytest.mark.parametrize("kind", EVERY, indirect=True)
def test_a_pruned_job_ends_itself(kind: str, tmp_path: Path) -> None:
    """A schedule's no reaches the trial, which stops after that epoch and says so itself."""
    schedule = Pruning([fakes.job(tmp_path, "p", epochs=5), fakes.job(tmp_path, "q", epochs=5)])
    notes = Notes()
    make(kind).run(schedule, notes)
    assert sorted(fakes.lines(tmp_path, "pruned")) == sorted(fakes.lines(tmp_path, "epoch1"))
    assert fakes.lines(tmp_path, "epoch2") == []
    assert [outcome.status for outcome in schedule.ended.values()] == ["pruned", "pruned"]


@pytest.mark.parametrize("kind", EVERY, indirect=True)
def test_one_process_serves_many_jobs(kind: str, tmp_path: Path) -> None:
    """Twenty jobs on two workers need two processes, so that what a worker loaded stays."""
    jobs = [fakes.job(tmp_path, f"job{i}") for i in range(20)]
    make(kind).run(FixedSchedule(jobs), Notes())
    processes = {process for *_, process in fakes.lines(tmp_path, "start")}
    assert len(processes) <= 2


@pytest.mark.parametrize("kind", ["pool", pytest.param("tune", marks=RAY)], indirect=True)
def test_workers_are_held_to_their_threads(kind: str, tmp_path: Path) -> None:
    """Worker processes start with the thread limit that every executor sets alike."""
    make(kind).run(FixedSchedule([fakes.job(tmp_path, "e", "environment")]), Notes())
    assert len(fakes.lines(tmp_path, "threads=1")) == 1


@pytest.mark.parametrize("kind", ["pool", pytest.param("tune", marks=RAY)], indirect=True)
def test_workers_load_nothing_that_no_trial_needs(kind: str, tmp_path: Path) -> None:
    """Sixteen workers on a node would each take seconds and memory for the driver's packages."""
    make(kind).run(FixedSchedule([fakes.job(tmp_path, "e", "environment")]), Notes())
    assert len(fakes.lines(tmp_path, "loaded=")) == 1


@pytest.mark.parametrize("kind", WITH_PROCESSES, indirect=True)
def test_a_killed_worker_loses_no_job(kind: str, tmp_path: Path) -> None:
    """A job whose process is killed counts as preempted and is done by a fresh process."""
    jobs = [fakes.job(tmp_path, name) for name in "abc"]
    jobs.insert(1, fakes.job(tmp_path, "k", "kill-once"))
    schedule = FixedSchedule(jobs, max_attempts=1)
    notes = Notes()
    make(kind).run(schedule, notes)
    assert {outcome.status for outcome in schedule.ended.values()} == {"done"}
    assert [end for end in notes.ends if end[0] == "k"] == [
        ("k", "failed", "preempted", True),
        ("k", "done", None, False),
    ]
    first, second = [process for name, _, process in fakes.lines(tmp_path, "start") if name == "k"]
    assert first != second
    assert sorted(name for name, *_ in fakes.lines(tmp_path, "commit")) == ["a", "b", "c", "k"]


@pytest.mark.parametrize("kind", WITH_PROCESSES, indirect=True)
def test_a_job_that_always_kills_its_worker_fails_in_the_end(kind: str, tmp_path: Path) -> None:
    """The bound on free retries ends a job that takes down every worker it gets."""
    schedule = FixedSchedule([fakes.job(tmp_path, "k", "kill")], max_lost=2)
    make(kind).run(schedule, Notes())
    assert schedule.ended["k"].failure_kind == "preempted"
    assert len(fakes.lines(tmp_path, "start")) == 2


@pytest.mark.slow
def test_the_pool_tells_a_crash_from_a_kill(tmp_path: Path) -> None:
    """A segmentation fault is the job's own doing: bounded retries, with the log's path."""
    schedule = FixedSchedule([fakes.job(tmp_path, "s", "crash")], max_attempts=1)
    LocalExecutor(2, worker=WORKER, logs=str(tmp_path / "logs")).run(schedule, Notes())
    assert schedule.ended["s"].failure_kind == "unknown"
    assert "SIGSEGV" in schedule.ended["s"].message
    assert str(tmp_path / "logs") in schedule.ended["s"].message


DRIVER = """
import os, pathlib, sys
import executor_fakes as fakes
from test_executors_contract import make, Notes
from sweep.schedule import FixedSchedule
if __name__ == "__main__":
    kind, store = sys.argv[1:]
    pathlib.Path(store, "driver").write_text(str(os.getpid()))
    names = [f"job{i}" for i in range(6)]
    left = [n for n in names if not pathlib.Path(store, f"{n}.done").exists()]
    does = lambda n: "interrupt-me" if n == "job2" and len(left) == 6 else "succeed"
    try:
        make(kind).run(FixedSchedule([fakes.job(store, n, does(n)) for n in left]), Notes())
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("here", marks=pytest.mark.slow),
        pytest.param("pool", marks=pytest.mark.slow),
        pytest.param("tune", marks=RAY),
    ],
)
def test_ctrl_c_then_again_runs_only_the_rest(kind: str, tmp_path: Path) -> None:
    """After SIGINT a sweep exits with 130; the next one runs what was not committed, no more."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), kind, str(tmp_path)]
    first = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert first.returncode == 130, first.stderr
    assert "Stopping" in first.stderr
    committed = {name for name, *_ in fakes.lines(tmp_path, "commit")}
    assert "job5" not in committed
    (tmp_path / "log").unlink()
    second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert second.returncode == 0, second.stderr
    again = [name for name, *_ in fakes.lines(tmp_path, "start")]
    assert sorted(again) == sorted({f"job{i}" for i in range(6)} - committed)


@pytest.mark.slow
def test_workers_leave_when_the_driver_is_killed(tmp_path: Path) -> None:
    """After `kill -9` of the driver no worker process of the pool stays behind."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.replace('"succeed"', '"hang"'))
    os.mkfifo(tmp_path / "pipe")
    driver = subprocess.Popen([sys.executable, str(script), "pool", str(tmp_path)])
    # Open for writing, too: otherwise the end of the first writer is the end of the file.
    with os.fdopen(os.open(tmp_path / "pipe", os.O_RDWR)) as pipe:
        workers = [int(pipe.readline()) for _ in range(2)]
    handles = [os.pidfd_open(worker) for worker in workers]
    driver.kill()
    driver.wait()
    for handle in handles:  # readable once its process has ended
        assert select.select([handle], [], [], 30)[0]
        os.close(handle)
