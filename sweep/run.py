"""Run what is left of a study: plan -> lock -> execute -> compact -> track, and say how it went."""

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from sweep.cache import cache_folder
from sweep.commit import commit_failure
from sweep.complaints import StudyError, wrong_value
from sweep.executor import WORKER, Executor
from sweep.housekeeping import Housekeeper
from sweep.ledger import Ledger
from sweep.lock import DriverLock
from sweep.opened import Opened, again, open_study
from sweep.overlap import try_overlap
from sweep.packing import Packing, measured
from sweep.progress import Board, shown
from sweep.schedule import FixedSchedule, Schedule
from sweep.search.schedule import SearchSchedule
from sweep.storage import StorageError, Store
from sweep.study import Study
from sweep.work import Work
from sweep.worker import Outcome

if TYPE_CHECKING:
    from sweep.tracking import Tracker

CARDS = Path("/dev"), "nvidia[0-9]*"
"""Where NVIDIA's driver shows the GPUs of a machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run did.

    Attributes:
        study: Name of the study.
        store: Root of its store.
        total: Trials of the study.
        already: Of these, measured before the run.
        done: Completed by this run.
        pruned: Stopped early, by this run or before.
        failed: Given up by this run: failure kind -> number of trials.
        left: Neither: interrupted before they ended, or not begun.
        failures: The last word on each failed job.
        seconds: Duration of the run.
        untracked: Trials that MLflow does not show yet; `sweep track` completes it.
        void: Points of a search that failed for good; the search goes on without them.
    """

    study: str
    store: str
    total: int
    already: int
    done: int = 0
    pruned: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    failures: Sequence[Outcome] = ()
    seconds: float = 0.0
    untracked: int = 0
    void: int = 0

    @property
    def is_complete(self) -> bool:
        """Nothing of the study is left to do."""
        return self.total == self.already + self.done + self.pruned + self.void


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a signal; everything that was committed is safe.

    Args:
        summary: What it did until then.
    """

    def __init__(self, summary: RunSummary) -> None:
        super().__init__()
        self.summary = summary


def run_study(
    study: Study,
    *,
    store: str | None = None,
    executor: Literal["local", "tune"] | Executor | None = None,
    workers: int | None = None,
    track: bool | None = None,
    console: Console | None = None,
    worker: str = WORKER,
) -> RunSummary:
    """Run what is left of a study.

    A study that is complete runs nothing; running it again after any end goes on where it stands.

    Args:
        study: The study.
        store: Store to use instead of the study's own.
        executor: `local`, `tune` or one of your own; None takes the study's choice.
        workers: Trials at a time; None for what the machine or the cluster holds.
        track: Show trials in MLflow as they are committed; None takes the study's choice.
        console: Where progress goes; None for stderr.
        worker: The function that runs a job, as "module:object".

    Returns:
        What was done; failed trials are counted, not raised.

    Raises:
        DataError: subword overlap is asked for, and a file is wrong. Nothing was run.
        StudyError: the study's files are missing or wrong, or it wants a GPU that is not here.
            Nothing was run.
        StoreLockedError: another driver works on the store. Nothing was run.
        StorageError: the store cannot be written. Nothing was run.
        TrackingError: the study's tracking URI cannot be used. Nothing was run.
        ClusterError: the cluster that RAY_ADDRESS names cannot be joined. Nothing was run.
        Interrupted: after SIGINT or SIGTERM; rows of finished trials are committed.
    """
    began = time.monotonic()
    console = console or Console(stderr=True)
    on = _is_on(track, study)
    opened = open_study(study, store)
    home = Store(opened.store)
    with DriverLock(home) as lock:
        opened = again(opened)  # what another driver has done before we had the lock
        work = Work(opened)
        _keep_study(opened, home)
        if study.evaluate.overlap:
            try_overlap(opened.trials, home, cache_folder(), say=partial(_say, console))
        settled = _settled(opened)
        ends = Counter(settled.values())
        known = RunSummary(
            study=study.name,
            store=opened.store,
            total=len(opened.trials),
            already=ends["done"],
            pruned=ends["pruned"],
            void=ends["failed"],
        )
        if work.schedule.is_done():
            if opened.ledger.has_loose:  # the driver before us died before it tidied up
                _tidy(opened, home, lock, _tracker(opened, console) if on else None, console)
            return known
        if _has_idle_gpu(study):
            text = "A GPU is here, and this study trains on the CPU."
            _say(console, f"{text} To use it: --set resources.gpus=auto")
        crew = _crew(study, executor, workers, worker, work.schedule.total, mark=lock.token)
        tracker = _tracker(opened, console) if on else None
        board = Board(began=began, already=known.already, search_seed=_search_seed(study))
        work.show_on(board)
        keeper = Housekeeper(
            home, opened.ledger, lock, tracker=tracker, trial_ids=work.trial_ids, console=console
        )
        started = datetime.now(UTC)
        is_interrupted = False
        try:
            with keeper, work.mirrored(console), shown(board, console) as watch:
                crew.run(_packed(work.schedule, opened), watch)
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            _commit_silent_failures(work.schedule, opened.ledger, started)
            keeper.finish()
        opened = again(opened)
        _keep_study(opened, home)
        seconds = time.monotonic() - began
        summary = replace(
            _counted(known, settled, opened, work.schedule),
            seconds=seconds,
            untracked=keeper.untracked,
        )
    if is_interrupted:
        console.print(
            f"Interrupted. {summary.done} trials were done in this run, {summary.left} are left; "
            "run the same command again to go on.",
            soft_wrap=True,
        )
        raise Interrupted(summary)
    return summary


def _tidy(
    opened: Opened, home: Store, lock: DriverLock, tracker: "Tracker | None", console: Console
) -> None:
    """Show and compact what a driver committed before it was killed."""
    keeper = Housekeeper(
        home, opened.ledger, lock, tracker=tracker, trial_ids=set(opened.trial_ids), console=console
    )
    with keeper:
        pass
    keeper.finish()


def _crew(
    study: Study,
    executor: Literal["local", "tune"] | Executor | None,
    workers: int | None,
    worker: str,
    n_jobs: int,
    *,
    mark: str,
) -> Executor:
    """The executor that was asked for, no larger than there are jobs."""
    kind = executor or study.executor
    if not isinstance(kind, str):
        return kind
    cpus, threads = study.resources.cpus, study.resources.threads
    if kind == "tune" and os.environ.get("RAY_ADDRESS"):
        here = 200  # the cluster's own size decides, and an autoscaler sees the demand
    else:
        n_gpus = _gpus_here(study)
        if kind == "local":
            n_gpus = min(1, n_gpus)  # its processes all take the first one
        here = default_workers(cpus, study.resources.least_gpus, n_gpus)
    n = min(workers or here, n_jobs)
    if kind == "local":
        from sweep.local import LocalExecutor

        logs = str(Path(cache_folder(), "logs", study.name))
        return LocalExecutor(n, threads=threads, worker=worker, logs=logs)
    from sweep.tune import TuneExecutor

    return TuneExecutor(n, threads=threads, cpus=cpus, worker=worker, mark=mark)


def _packed(schedule: Schedule, opened: Opened) -> Schedule:
    """The schedule, with a share of a GPU for every job if the study wants GPUs."""
    gpus = opened.study.resources.gpus
    if not gpus:
        return schedule
    known = measured(opened.ledger.table("trials").to_pylist()) if gpus == "auto" else {}
    return Packing(schedule, gpus, known)


def default_workers(cpus: float, gpus: float, n_gpus: int = 0) -> int:
    """How many trials this machine runs at a time.

    Args:
        cpus: Cores of a trial.
        gpus: GPU share of a trial.
        n_gpus: GPUs to fill.
    """
    by_cpu = max(1, int(len(os.sched_getaffinity(0)) / cpus))
    return min(by_cpu, max(1, n_gpus * int(1 / gpus))) if gpus else by_cpu


def _gpus_here(study: Study) -> int:
    """GPUs of this machine, counted only for a study that wants them.

    Raises:
        StudyError: it wants them, and there is none: Ray would wait for one without a word.
    """
    if not study.resources.gpus:
        return 0
    import torch

    found = torch.cuda.device_count()
    if not found:
        what = (
            "torch finds no GPU on this machine. Write 0 to train on the CPU, or name a Ray "
            "cluster that has some in RAY_ADDRESS."
        )
        raise StudyError(wrong_value(study.file, "resources.gpus", study.resources.gpus, what))
    return found


def _has_idle_gpu(study: Study) -> bool:
    """Whether this machine has a GPU that a study asks nothing of. Loads no torch."""
    is_elsewhere = bool(os.environ.get("RAY_ADDRESS")) and study.executor == "tune"
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}
    return not (study.resources.gpus or is_elsewhere or is_hidden) and any(CARDS[0].glob(CARDS[1]))


def _search_seed(study: Study) -> int | None:
    """The seed by which one sees that a trial only searches; None where it cannot be seen so."""
    return study.seeds.search if study.search.is_on and not study.seeds.reuse_search else None


def _is_on(track: bool | None, study: Study) -> bool:
    return study.tracking.enabled if track is None else track


def _keep_study(opened: Opened, home: Store) -> None:
    """Store the study as it was understood, with every default, and the ids of its trials."""
    folder = f"studies/{opened.study.name}"
    text = opened.study.model_dump_json(indent=1)
    home.publish(f"{folder}/study.json", text.encode())
    home.publish(f"{folder}/trials.json", json.dumps(opened.trial_ids, indent=0).encode())


def _commit_silent_failures(
    schedule: FixedSchedule | SearchSchedule, ledger: Ledger, started: datetime
) -> None:
    """Give failures a row that their workers could not commit, as they had died."""
    if not schedule.lost:
        return
    ledger.refresh()
    told = {
        failure.job_id
        for failure in ledger.failures()
        if failure.finished is not None and failure.finished >= started
    }
    now = datetime.now(UTC)
    for job in schedule.lost.values():
        outcome = schedule.ended[job.job_id]
        if job.job_id in told or outcome.failure_kind == "storage":
            continue
        since = now - timedelta(seconds=outcome.seconds)
        kind = outcome.failure_kind or "unknown"
        try:
            commit_failure(job, kind, outcome.message, started=since, finished=now)
        except StorageError:
            return  # the summary tells of the failure all the same


def _settled(opened: Opened) -> dict[str, str]:
    """Trials of which nothing is left to do -> how they ended, by what is committed."""
    missing = opened.ledger.missing
    return {
        trial.trial_id: trial.ended or "done"
        for trial in opened.trials
        if trial.ended or not (trial.is_open or missing(trial.trial_id, trial.spec, trial.request))
    }


def _counted(
    known: RunSummary,
    before: Mapping[str, str],
    opened: Opened,
    schedule: FixedSchedule | SearchSchedule,
) -> RunSummary:
    """Count by what is committed, which also knows of jobs whose end nobody heard of."""
    settled = _settled(opened)
    ends = Counter(settled.values())
    n_new = sum(
        end == "done" and trial not in before and trial in schedule.handed_out
        for trial, end in settled.items()
    )
    failures = [
        outcome
        for outcome in schedule.ended.values()
        if outcome.status == "failed" and outcome.trial_id not in settled
    ]
    lost = {outcome.trial_id for outcome in failures}
    return replace(
        known,
        total=len(opened.trials),
        already=ends["done"] - n_new,
        done=n_new,
        pruned=ends["pruned"],
        void=ends["failed"],
        failed=dict(Counter(outcome.failure_kind or "unknown" for outcome in failures)),
        left=len(opened.trials) - len(settled) - len(lost),
        failures=failures,
    )


def _tracker(opened: Opened, console: Console) -> "Tracker":
    from sweep.tracking import Tracker

    return Tracker(
        opened.store,
        opened.study.name,
        opened.study.tracking.uri,
        warn=partial(_say, console),
    )


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False)
