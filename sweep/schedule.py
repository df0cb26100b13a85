"""Which job comes next, and what becomes of one that failed; knows no executor and no clock.

A schedule hands out jobs one by one, hears how each ended, and may hand a job out again. The
fixed list of a grid is one schedule; a search that decides as results come in is another
(`sweep.search.schedule`). What a failure leads to is the same in both.
"""

from abc import ABC, abstractmethod
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


class Retrying(ABC):
    """Hands out each job until it is done or has failed for good; where jobs come from is open.

    What a failure leads to depends on its kind:

    - `user`: final. The same study and data fail the same way.
    - `out-of-memory`: again with half the micro-batch (same effective batch and numbers), down
      to one sentence; then final.
    - `preempted`: again, first in line, as its checkpoint waits. Free, but for a bound that
      ends a job which takes its worker down every time.
    - `unknown`: again, last in line, up to `max_attempts` such attempts.
    - `storage`: the same; but when `max_attempts` attempts in a row could not store their
      results, nothing more is handed out: no trial would fare better.

    Args:
        max_attempts: Attempts that may end `unknown` before the job has failed.
        max_lost: Attempts that may end `preempted` before the job has failed.
    """

    def __init__(self, max_attempts: int = 3, max_lost: int = 20) -> None:
        self._urgent: deque[Job] = deque()
        self._again: deque[Job] = deque()
        self._running: dict[str, Job] = {}
        self._ended: dict[str, Outcome] = {}
        self._lost: dict[str, Job] = {}
        self.handed_out: set[str] = set()
        """Trials of the jobs that were handed out."""
        self._n_unstored = 0
        self._counts: dict[tuple[str, str], int] = {}
        self._max_attempts = max_attempts
        self._max_lost = max_lost
        self._is_hopeless = False

    @property
    def ended(self) -> Mapping[str, Outcome]:
        """The last word on each job that is done, pruned or failed for good, by job id."""
        return self._ended

    @property
    def lost(self) -> Mapping[str, Job]:
        """Jobs that have failed for good, by id, as they were attempted last."""
        return self._lost

    def next(self) -> Job | None:
        """Hand out what was preempted, else a new job, else one that failed before."""
        job = self._waiting()
        if job is not None:
            self._running[job.job_id] = job
            self.handed_out.add(job.trial_id)
        return job

    def is_done(self) -> bool:
        """Say that no job waits and none runs."""
        return not self._running and not self._urgent and not self._again and not self._has_fresh()

    def report(self, job: Job, point: CurvePoint) -> bool:  # noqa: ARG002 - prunes nothing
        """Let every trial go on."""
        return True

    def finished(self, job: Job, outcome: Outcome) -> bool:
        """Take note, and put the job back in line if its failure may pass."""
        del self._running[job.job_id]
        self._n_unstored = self._n_unstored + 1 if outcome.failure_kind == "storage" else 0
        if self._n_unstored >= self._max_attempts:
            self._is_hopeless = True
            self._urgent.clear()
            self._again.clear()
        again = None if self._is_hopeless else self._following(job, outcome)
        if again is None:
            self._ended[job.job_id] = outcome
            if outcome.status == "failed":
                self._lost[job.job_id] = job
            self._settled(job, outcome)
            return False
        if outcome.failure_kind == "preempted":
            self._urgent.appendleft(again)
        else:
            self._again.append(again)
        return True

    @abstractmethod
    def _fresh(self) -> Job | None:
        """A job that was never handed out; None when there is none now."""

    @abstractmethod
    def _has_fresh(self) -> bool:
        """Whether `_fresh` would give one. Asked only while nothing runs."""

    def _settled(self, job: Job, outcome: Outcome) -> None:  # noqa: B027 - a hook; most need none
        """Hear the last word on a job."""

    def _waiting(self) -> Job | None:
        if self._urgent:
            return self._urgent.popleft()
        fresh = None if self._is_hopeless else self._fresh()
        if fresh is None and self._again:
            return self._again.popleft()
        return fresh

    def _following(self, job: Job, outcome: Outcome) -> Job | None:
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


class FixedSchedule(Retrying):
    """The jobs of a grid, in order.

    Args:
        jobs: In the order to hand out. Their ids must differ.
        max_attempts: As in `Retrying`.
        max_lost: As in `Retrying`.
    """

    def __init__(self, jobs: Iterable[Job], max_attempts: int = 3, max_lost: int = 20) -> None:
        super().__init__(max_attempts, max_lost)
        self._jobs = deque(jobs)
        self.total = len(self._jobs)
        """Jobs in this schedule."""
        ids = {job.job_id for job in self._jobs}
        if len(ids) != self.total:
            raise ValueError(f"{self.total} jobs share {len(ids)} ids. Each job needs its own.")

    def _fresh(self) -> Job | None:
        return self._jobs.popleft() if self._jobs else None

    def _has_fresh(self) -> bool:
        return bool(self._jobs) and not self._is_hopeless
