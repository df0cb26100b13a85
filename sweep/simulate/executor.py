"""SimulatedExecutor: runs any schedule on an imagined fleet, as Tune would on a real one.

What is rehearsed is the code that decides: the schedule hands out jobs, hears of epochs and of
ends, and decides on retries and pruning, here as there. Made up are the durations, the nodes, and
the dev scores. As with Tune, at most `workers` jobs are out at a time; those without a slot wait in
line, and are the demand that makes the fleet grow.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sweep.clusterfile import Cluster, NodeType
from sweep.executor import Watch
from sweep.local import WAITS_FOR_NOTHING
from sweep.schedule import Schedule
from sweep.simulate.agenda import Agenda
from sweep.simulate.fleet import Fleet, Node
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job

Durations = Callable[[Job, NodeType], float]
"""Expected seconds of a job on a node of some type, in a warm worker."""

Curves = Callable[[Job], list[CurvePoint]]
"""The made-up training curve of a job; empty for one that reports nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Seconds that are nobody's work. Measured here unless said otherwise.

    Attributes:
        cold_s: First job of a worker: start of the process, imports, encoder into memory.
        warm_s: Every further one.
        driver_s: The driver's own time for a job; it does one after the other.
        notice_s: From the loss of a node to the driver's knowing (2 to 15 s were seen).
        checkpoint_s: Work between two checkpoints of a trial.
    """

    cold_s: float = 12.0
    warm_s: float = 0.3
    driver_s: float = 0.025
    notice_s: float = 10.0
    checkpoint_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Span:
    """One attempt in one slot: for the timeline."""

    node: int
    slot: int
    began: float
    ended: float
    job: Job
    status: str


@dataclass(slots=True)
class _Running:
    """One attempt under way; `is_over` when its node has gone or it was pruned."""

    job: Job
    node: Node
    slot: int
    began: float
    seconds: float
    is_over: bool = False


@dataclass(slots=True)
class Account:
    """What a rehearsal counts.

    Attributes:
        fleet: The nodes it used.
        makespan_s: Until the schedule was done.
        busy_s: Seconds of slots that trials used, lost work included.
        lost_s: Work that was done twice, as a node went with it.
        interruptions: Nodes that were taken back.
        hit: Jobs that such a loss interrupted.
        attempts: Jobs that were started, retries included.
        ended: Jobs that came to an end of their own, pruned or not.
        pruned: Of these, stopped early.
        spans: Every attempt, where asked for.
    """

    fleet: Fleet
    makespan_s: float = 0.0
    busy_s: float = 0.0
    lost_s: float = 0.0
    interruptions: int = 0
    hit: int = 0
    attempts: int = 0
    ended: int = 0
    pruned: int = 0
    spans: list[Span] = field(default_factory=list)


class SimulatedExecutor:
    """Runs schedules on a cluster that does not exist; see `sweep.executor.Executor`.

    Args:
        cluster: What may be launched.
        durations: Expected seconds of a job.
        cpus: Cores of a trial.
        gpus: GPU share of a trial.
        workers: Most jobs at a time; None for as many as the whole cluster holds.
        noise: Standard deviation of a job's duration around its expectation, on the log scale.
        mtbf_s: Mean life of a spot node.
        delays: What is nobody's work.
        curves: Dev curves, for schedules that prune; None for no reports of epochs.
        seed: Of durations and interruptions.
        keeps_spans: Note every attempt, for a timeline.
    """

    def __init__(
        self,
        cluster: Cluster,
        durations: Durations,
        *,
        cpus: float = 1.0,
        gpus: float = 0.0,
        workers: int | None = None,
        noise: float = 0.0,
        mtbf_s: float = math.inf,
        delays: Delays | None = None,
        curves: Curves | None = None,
        seed: int = 0,
        keeps_spans: bool = False,
    ) -> None:
        self.cluster = cluster
        self.durations = durations
        self.cpus, self.gpus = cpus, gpus
        self.workers = workers
        self.noise = noise
        self.mtbf_s = mtbf_s
        self.delays = delays or Delays()
        self.curves = curves
        self.seed = seed
        self.keeps_spans = keeps_spans

    def run(self, schedule: Schedule, watch: Watch) -> Account:
        """Hand out jobs until the schedule is done; returns what it took."""
        return _Run(self, schedule, watch).run()


class _Run:
    """One rehearsal."""

    def __init__(self, owner: SimulatedExecutor, schedule: Schedule, watch: Watch) -> None:
        self._owner = owner
        self._schedule = schedule
        self._watch = watch
        self._random = np.random.default_rng(owner.seed)
        self._agenda = Agenda()
        self._fleet = Fleet(
            owner.cluster,
            self._agenda,
            cpus=owner.cpus,
            gpus=owner.gpus,
            lost=self._lose,
            random=self._random,
            mtbf_s=owner.mtbf_s,
        )
        self._workers = owner.workers or self._fleet.capacity
        self._waiting: deque[Job] = deque()
        self._n_running = 0
        self._on: defaultdict[int, dict[str, _Running]] = defaultdict(dict)  # by node
        self._silent = 0  # jobs whose node has gone, and the driver does not know yet
        self._factor: dict[str, float] = {}
        self._kept: dict[str, float] = {}  # job id -> seconds of it in its checkpoint
        self._driver_free = 0.0
        self._account = Account(self._fleet)

    def run(self) -> Account:
        """From the first job to the end of the last."""
        while not self._schedule.is_done():
            self._hand_out()
            if not self._live or not self._agenda:
                raise RuntimeError(WAITS_FOR_NOTHING)
            self._agenda.step()
        self._account.makespan_s = self._agenda.now
        return self._account

    @property
    def _live(self) -> int:
        """Jobs that were handed out and have not come back."""
        return len(self._waiting) + self._n_running + self._silent

    def _hand_out(self) -> None:
        live = self._live
        while live < self._workers:
            job = self._schedule.next()
            if job is None:
                break
            self._waiting.append(job)
            live += 1
        while self._waiting:
            place = self._fleet.take()
            if place is None:
                self._fleet.scale(len(self._waiting))
                return
            self._start(self._waiting.popleft(), *place)

    def _start(self, job: Job, node: Node, slot: int, is_warm: bool) -> None:
        delays, now = self._owner.delays, self._agenda.now
        self._driver_free = max(now, self._driver_free) + delays.driver_s
        wait = self._driver_free - now + (delays.warm_s if is_warm else delays.cold_s)
        whole = self._owner.durations(job, node.type) * self._noise(job)
        seconds = max(0.0, whole - self._kept.get(job.job_id, 0.0))
        running = _Running(job, node, slot, now + wait, seconds)
        self._on[node.number][job.job_id] = running
        self._n_running += 1
        self._account.attempts += 1
        self._watch.started(job)
        self._agenda.after(wait + seconds, lambda: self._end(running, "done"))
        if self._owner.curves is not None:
            points = self._owner.curves(job)
            first = len(points) - round(len(points) * seconds / whole) if whole else 0
            for i, point in enumerate(points[first:], start=1):
                at = wait + seconds * i / (len(points) - first + 1)
                self._agenda.after(at, lambda point=point: self._hear(running, point))  # type: ignore[misc] # the default binds the point

    def _noise(self, job: Job) -> float:
        """How much longer this job takes than one expects; the same in every attempt."""
        if not self._owner.noise:
            return 1.0
        if job.job_id not in self._factor:
            sd = self._owner.noise
            drawn = sd * self._random.standard_normal() - sd**2 / 2
            self._factor[job.job_id] = math.exp(drawn)
        return self._factor[job.job_id]

    def _hear(self, running: _Running, point: CurvePoint) -> None:
        """The end of an epoch."""
        if running.is_over:
            return
        self._watch.epoch(running.job, point)
        if not self._schedule.report(running.job, point):
            self._end(running, "pruned")

    def _end(self, running: _Running, status: str) -> None:
        """The attempt has committed."""
        if running.is_over:
            return
        running.is_over = True
        self._leave(running, status)
        self._fleet.free(running.node, running.slot)
        self._account.ended += 1
        self._account.pruned += status == "pruned"
        job = running.job
        outcome = Outcome(
            job_id=job.job_id,
            trial_id=job.trial_id,
            status="pruned" if status == "pruned" else "done",
            seconds=self._agenda.now - running.began,
        )
        self._finish(job, outcome)

    def _lose(self, node: Node) -> None:
        """A node was taken back with all that ran on it."""
        self._account.interruptions += 1
        for running in list(self._on[node.number].values()):
            running.is_over = True
            self._account.hit += 1
            done = max(0.0, self._agenda.now - running.began)
            step = self._owner.delays.checkpoint_s
            saved = done - done % step if step else done
            self._kept[running.job.job_id] = self._kept.get(running.job.job_id, 0.0) + saved
            self._account.lost_s += done - saved
            self._leave(running, "lost")
            self._silent += 1
            self._agenda.after(
                self._owner.delays.notice_s,
                lambda job=running.job: self._notice(job),  # type: ignore[misc] # the default binds the job
            )

    def _notice(self, job: Job) -> None:
        self._silent -= 1
        outcome = Outcome(
            job_id=job.job_id,
            trial_id=job.trial_id,
            status="failed",
            failure_kind="preempted",
            message="the provider took the node back",
        )
        self._finish(job, outcome)

    def _leave(self, running: _Running, status: str) -> None:
        """Book the time that an attempt had its slot."""
        del self._on[running.node.number][running.job.job_id]
        self._n_running -= 1
        now = self._agenda.now
        took = max(0.0, now - running.began)
        running.node.busy_s += took
        self._account.busy_s += took
        if self._owner.keeps_spans:
            self._account.spans.append(
                Span(running.node.number, running.slot, running.began, now, running.job, status)
            )

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self._watch.finished(job, outcome, retried=self._schedule.finished(job, outcome))
