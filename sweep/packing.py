"""How much of a GPU a trial gets: a declared share, or the memory that trials of its kind took.

`Packing` stands between a schedule and an executor, and puts a share on every job it hands out. A
kind of trial that was never measured is rehearsed first: one step at the longest batch, one look
at the fullest, on a card of its own; its other trials wait the seconds that takes. A trial that
does not fit its share even one sentence at a time (the worker has tried that) gets a larger one.
"""

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sweep.rows import spec_from_json
from sweep.schedule import Schedule
from sweep.sections import STEP
from sweep.worker import Outcome
from trainables.shortage import CONTEXT
from trainables.spec import CurvePoint, Job, TrialSpec

MARGIN = 1.15
"""Over the measured peak: an allocator keeps more than is in use."""

HELD = 64
"""Most jobs that wait for the rehearsals of their kinds."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Trials that need about as much memory."""

    encoder: str
    task: str
    batch_size: int
    max_length: int
    precision: str

    @classmethod
    def of(cls, spec: TrialSpec) -> "Kind":
        """That of a trial."""
        return cls(
            encoder=spec.encoder.fingerprint,
            task=spec.task,
            batch_size=spec.hyper.batch_size,
            max_length=spec.options.max_length,
            precision=spec.precision,
        )


def needed(peak: float, device_memory: float) -> float:
    """Share of a GPU that holds a measured peak, as a multiple of `STEP`, at most 1.

    Args:
        peak: Bytes.
        device_memory: Bytes of the GPU on which it was measured.
    """
    share = (peak * MARGIN + CONTEXT) / device_memory
    return min(1.0, max(1, math.ceil(share / STEP)) * STEP)


def measured(trials: Iterable[Mapping[str, Any]]) -> dict[Kind, float]:
    """Shares by the peaks that committed trials had on GPUs.

    Args:
        trials: Rows of the `trials` table with `spec`, `status`, `peak_memory`, `device_memory`
            and `micro_batch`. A trial that had to go in smaller parts tells nothing of the whole.
    """
    found: dict[Kind, float] = {}
    for row in trials:
        if row["status"] != "done" or not row["device_memory"] or not row["peak_memory"]:
            continue
        if row["micro_batch"] is not None:
            continue
        kind = Kind.of(spec_from_json(row["spec"]))
        share = needed(row["peak_memory"], row["device_memory"])
        found[kind] = max(found.get(kind, 0.0), share)
    return found


@dataclass(slots=True)
class Packing:
    """A schedule whose jobs have their share of a GPU (a `Schedule`).

    Attributes:
        inner: Decides which job comes next.
        gpus: Share of every job; `auto` for what its kind needs.
        shares: What kinds are known to need; grows as trials are measured or run out of memory.
    """

    inner: Schedule
    gpus: float | Literal["auto"]
    shares: dict[Kind, float] = field(default_factory=dict)
    _waiting: list[tuple[int, Job]] = field(default_factory=list)
    _held: dict[Kind, list[Job]] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _n_seen: int = 0

    @property
    def total(self) -> int:
        """Jobs of the inner schedule."""
        return self.inner.total

    def next(self) -> Job | None:
        """Hand out a job with its share, or the rehearsal of its kind."""
        if self._waiting:
            return self._sized(heapq.heappop(self._waiting)[1])
        while sum(len(jobs) for jobs in self._held.values()) < HELD:
            job = self.inner.next()
            if job is None:
                return None
            self._n_seen += 1
            self._places[job.job_id] = self._n_seen
            kind = Kind.of(job.spec)
            if self._share(kind) is not None:
                return self._sized(job)
            if kind not in self._held:
                self._held[kind] = []
                alone = replace(job.workspace, gpus=1.0, memory_fraction=1.0, rehearse=True)
                return replace(job, workspace=alone)
            self._held[kind].append(job)
        return None

    def is_done(self) -> bool:
        """Whether the inner schedule is; what is held here counts as running there."""
        return self.inner.is_done()

    def report(self, job: Job, point: CurvePoint) -> bool:
        """As the inner schedule decides."""
        return self.inner.report(job, point)

    def finished(self, job: Job, outcome: Outcome) -> bool:
        """Learn from the outcome; after a rehearsal or too small a share comes the job itself."""
        kind = Kind.of(job.spec)
        if job.workspace.rehearse:
            return self._rehearsed(kind, job, outcome)
        share = job.workspace.gpus
        if outcome.failure_kind == "out-of-memory" and share < 1:
            self.shares[kind] = max(self._share(kind) or 0.0, min(1.0, 2 * share))
            self._wait(replace(job, attempt=job.attempt + 1))
            return True
        self._places.pop(job.job_id, None)  # a retry of the inner schedule gets a new one
        return self.inner.finished(job, outcome)

    def _rehearsed(self, kind: Kind, job: Job, outcome: Outcome) -> bool:
        if outcome.status == "done" and outcome.device_memory:
            self.shares[kind] = needed(outcome.peak_memory, outcome.device_memory)
        else:  # what went wrong will be said by the trial itself, on a whole card
            self.shares[kind] = 1.0
        plain = replace(job, workspace=replace(job.workspace, rehearse=False))
        for known in (plain, *self._held.pop(kind)):
            self._wait(known)
        return True

    def _wait(self, job: Job) -> None:
        """Put a job where it was in the inner schedule's order, whatever its kind waited for."""
        heapq.heappush(self._waiting, (self._places[job.job_id], job))

    def _share(self, kind: Kind) -> float | None:
        if self.gpus == "auto":
            return self.shares.get(kind)
        return self.shares.get(kind, self.gpus)

    def _sized(self, job: Job) -> Job:
        share = self._share(Kind.of(job.spec)) or 1.0
        return replace(job, workspace=replace(job.workspace, gpus=share, memory_fraction=share))
