"""What a worker does with one job: run it, commit it, and say in one value how it ended."""

import logging
import sys
import time
import traceback
from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from sweep.commit import KEPT, commit_failure, commit_result
from sweep.storage import StorageError, Store
from trainables.ablations.layers import AblationError
from trainables.data.sentence import DataError
from trainables.encoders.fingerprint import EncoderError
from trainables.registry import UnknownName
from trainables.shortage import is_shortage, release
from trainables.spec import CurvePoint, Job, Report, TrialResult

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt at a job ended.

    Attributes:
        job_id: The job.
        trial_id: Its trial.
        status: `done` and `pruned` are committed; so is `failed`, as a row with its reason, but
            where the store itself failed. A rehearsal that is `done` has stored nothing.
        failure_kind: `user` (the same study and data fail the same way), `out-of-memory`,
            `preempted`, `storage` (results cannot be written: nothing else will fare better) or
            `unknown`; None unless failed.
        message: What went wrong, for people; empty unless failed.
        seconds: Duration of the attempt.
        peak_memory: Bytes that a rehearsal needed; else 0.
        device_memory: Bytes that there were; else 0.
    """

    job_id: str
    trial_id: str
    status: Literal["done", "pruned", "failed"]
    failure_kind: str | None = None
    message: str = ""
    seconds: float = 0.0
    peak_memory: int = 0
    device_memory: int = 0


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Run a job, pausing after every epoch.

    Args:
        job: What to run.

    Yields:
        The training curve, point by point; send False to prune the trial.

    Returns:
        How it ended. A trial's own failure never comes out as an exception; being closed and
        being interrupted do, and leave the last checkpoint.
    """
    began, started = time.monotonic(), datetime.now(UTC)
    if job.workspace.rehearse:
        return _rehearse(job, began)
    try:
        result = yield from _epochs(job)
        commit_result(job, result, started, datetime.now(UTC))
    except Exception as error:  # noqa: BLE001 - see the docstring
        kind, message = failure_kind(error), describe(error)
        trace = "".join(traceback.format_exception(error))
        release(error)
        if kind != "storage":
            message = _commit_failure(job, kind, message, trace, started)
        return _outcome(job, began, "failed", kind, message)
    _tidy(job)
    return _outcome(job, began, "done" if result.pruned_at is None else "pruned")


def work(job: Job, report: Report = lambda _point: True) -> Outcome:
    """Run a job to its end.

    Args:
        job: What to run.
        report: Called after every epoch; False prunes the trial.
    """
    steps = start(job)
    try:
        point = next(steps)
        while True:
            point = steps.send(report(point))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def _rehearse(job: Job, began: float) -> Outcome:
    """Find out what the job's trial needs of memory; a failure here is the trial's own to tell."""
    from torch import device

    from trainables.memory import total
    from trainables.rehearsal import rehearse

    try:
        peak = rehearse(job.spec, job.request, job.workspace)
    except Exception as error:  # noqa: BLE001 - as in `start`
        kind, message = failure_kind(error), describe(error)
        release(error)
        return _outcome(job, began, "failed", kind, message)
    found = total(device(job.workspace.device))
    seen = _outcome(job, began, "done")
    return replace(seen, peak_memory=peak, device_memory=found)


def _epochs(job: Job) -> Generator[CurvePoint, bool, TrialResult]:
    from trainables.trial import trial_epochs  # torch: seconds and half a gigabyte

    return trial_epochs(job.spec, job.request, job.workspace)


def failure_kind(error: BaseException) -> str:
    """Sort an error by what should follow from it.

    Returns:
        `user`, `out-of-memory`, `storage` or `unknown`.
    """
    if isinstance(error, StorageError):
        return "storage"
    if is_shortage(error):
        return "out-of-memory"
    if _is_final(error):
        return "user"
    return "unknown"


def _is_final(error: BaseException) -> bool:
    """Whether the same spec raises it every time."""
    if isinstance(error, DataError | UnknownName | AblationError | EncoderError):
        return True
    diverged = getattr(sys.modules.get("trainables.training"), "Diverged", None)  # loads torch
    return diverged is not None and isinstance(error, diverged)


def describe(error: BaseException) -> str:
    """An error's message; errors that are not ours are named by their type too."""
    text = str(error).strip()
    if (isinstance(error, StorageError) or _is_final(error)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _commit_failure(job: Job, kind: str, message: str, trace: str, started: datetime) -> str:
    """Commit the failure; the message, with the store's own trouble added if there is some."""
    try:
        commit_failure(
            job, kind, message, traceback=trace, started=started, finished=datetime.now(UTC)
        )
    except Exception as error:  # noqa: BLE001 - the trial's failure matters more than its row
        return f"{message} (and the failure could not be stored: {error})"
    return message


def _tidy(job: Job) -> None:
    """Remove the mid-trial checkpoints of a committed trial; weights that were kept stay."""
    try:
        folder = Store(job.workspace.checkpoints)
        kept = job.request.keep == "best" or job.job_id != job.trial_id
        if kept and folder.exists(KEPT):
            for file in folder.files():
                if file.path != KEPT:
                    folder.delete(file.path)
        else:
            folder.delete_folder("")
    except (StorageError, OSError) as error:
        log.warning("checkpoints of trial %s left behind: %s", job.trial_id, error)


def _outcome(
    job: Job,
    began: float,
    status: Literal["done", "pruned", "failed"],
    kind: str | None = None,
    message: str = "",
) -> Outcome:
    return Outcome(
        job_id=job.job_id,
        trial_id=job.trial_id,
        status=status,
        failure_kind=kind,
        message=message,
        seconds=time.monotonic() - began,
    )
