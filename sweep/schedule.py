"""Which job comes next, and what becomes of one that failed; knows no executor and no clock.

A schedule hands out jobs one by one, hears how each ended, and may hand a job out again. The
fixed list of a grid is one schedule; a search that decides as results come in is another.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job


class Schedule(Protocol):
    """What an executor asks for jobs and tells about them. Called from one thread only."""

    @property
    def total(self) -> int:
        """Jobs that will have been handed out in the end, retries not counted."""
        ...

    def next(self) -> Job | None:
        """Hand out a job; None means there is none now, perhaps later if jobs are running."""
        ...

    def is_done(self) -> bool:
        """Say that nothing runs and nothing will be handed out any more."""
        ...

    def report(self, job: Job, point: CurvePoint) -> bool:
        """Take note of an epoch; False asks the trial to stop (pruning)."""
        ...

    def finished(self, job: Job, outcome: Outcome) -> bool:
        """Take note of how an attempt ended; True means that the job will be handed out again."""
        ...


class FixedSchedule:
    """The jobs of a grid, in order, each until it is done or has failed for good.

    What a failure leads to depends on its kind:

    - `user`: final. The same study and data fail the same way.
    - `out-of-memory`: again with half the micro-batch (same effective batch, other dropout), down
      to one sentence; then final.
    - `preempted`: again, first in line, as its checkpoint waits. Free, but for a bound that
      ends a job which takes its worker down every time.
    - `unknown`: again, last in line, up to `max_attempts` such attempts.
    - `storage`: the same; but when `max_attempts` attempts in a row could not store their
      results, nothing more is handed out: no trial would fare better.

    Args:
        jobs: In the order to hand out. Their ids must differ.
        max_attempts: Attempts that may end `unknown` before the job has failed.
        max_lost: Attempts that may end `preempted` before the job has failed.
    """

    def __init__(self, jobs: Iterable[Job], max_attempts: int = 3, max_lost: int = 20) -> None:
        self._waiting = deque(jobs)
        self._running: dict[str, Job] = {}
        self._ended: dict[str, Outcome] = {}
        self._n_unstored = 0
        self._counts: dict[tuple[str, str], int] = {}
        self._max_attempts = max_attempts
        self._max_lost = max_lost
        self.total = len(self._waiting)
        """Jobs in this schedule."""
        ids = {job.job_id for job in self._waiting}
        if len(ids) != self.total:
            raise ValueError(f"{self.total} jobs share {len(ids)} ids. Each job needs its own.")

    @property
    def ended(self) -> Mapping[str, Outcome]:
        """The last word on each job that is done, pruned or failed for good, by job id."""
        return self._ended

    def next(self) -> Job | None:
        """Hand out the first waiting job."""
        if not self._waiting:
            return None
        job = self._waiting.popleft()
        self._running[job.job_id] = job
        return job

    def is_done(self) -> bool:
        """Say that no job waits and none runs."""
        return not self._waiting and not self._running

    def report(self, job: Job, point: CurvePoint) -> bool:  # noqa: ARG002 - a fixed list prunes nothing
        """Let every trial go on."""
        return True

    def finished(self, job: Job, outcome: Outcome) -> bool:
        """Take note, and put the job back in line if its failure may pass."""
        del self._running[job.job_id]
        self._n_unstored = self._n_unstored + 1 if outcome.failure_kind == "storage" else 0
        if self._n_unstored >= self._max_attempts:
            self._waiting.clear()
            self._ended[job.job_id] = outcome
            return False
        again = self._again(job, outcome)
        if again is None:
            self._ended[job.job_id] = outcome
            return False
        if outcome.failure_kind == "preempted":
            self._waiting.appendleft(again)
        else:
            self._waiting.append(again)
        return True

    def _again(self, job: Job, outcome: Outcome) -> Job | None:
        """The next attempt after a failure, or None when this was the last."""
        if outcome.status != "failed" or outcome.failure_kind == "user":
            return None
        following = replace(job, attempt=job.attempt + 1)
        if outcome.failure_kind == "out-of-memory":
            now = job.workspace.micro_batch or job.spec.hyper.batch_size
            smaller = replace(job.workspace, micro_batch=now // 2)
            return replace(following, workspace=smaller) if now > 1 else None
        kind = "preempted" if outcome.failure_kind == "preempted" else "unknown"
        count = self._counts[job.job_id, kind] = self._counts.get((job.job_id, kind), 0) + 1
        limit = self._max_lost if kind == "preempted" else self._max_attempts
        return following if count < limit else None
