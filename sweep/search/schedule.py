"""All searches and cells of a study in one schedule, without a barrier between them; no clock.

Each search and each cell is a small state of its own, and the slots go round among those that have
something to run. When a search ends, its cells have something to run from that moment on.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from sweep.grid import PlannedTrial
from sweep.schedule import Retrying
from sweep.search.cell import Cell
from sweep.search.layout import Layout
from sweep.search.results import FAILED, Results
from sweep.search.search import Search
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job, TrialSpec

MakeJob = Callable[[PlannedTrial], Job | None]
"""The job of a trial; None when nothing of it is left to do."""

Foresee = Callable[[TrialSpec, int], None]
"""Hears that so many more (or fewer) jobs of a kind are to come than was thought."""


class _Probes:
    """Trials that wait for nothing."""

    def __init__(self, trials: Iterable[PlannedTrial]) -> None:
        self._due = deque(trials)

    def next(self) -> PlannedTrial | None:
        """The next one."""
        return self._due.popleft() if self._due else None


Member = Search | Cell | _Probes


class SearchSchedule(Retrying):
    """Searches, then seeds, cell by cell and all at once.

    Args:
        layout: Searches and cells of the study. Owned by the schedule from now on.
        results: Knows the ends of trials, those of this run among them.
        make_job: The job of a trial, None when it is known already.
        foresee: Hears when more or fewer jobs are to come than `foreseen` says.
        show: Hears of each search that has moved on.
        max_attempts: As in `Retrying`.
        max_lost: As in `Retrying`.
    """

    def __init__(
        self,
        layout: Layout,
        results: Results,
        make_job: MakeJob,
        *,
        foresee: Foresee = lambda _spec, _more: None,
        show: Callable[[Search], None] = lambda _search: None,
        max_attempts: int = 3,
        max_lost: int = 20,
    ) -> None:
        super().__init__(max_attempts, max_lost)
        self._layout = layout
        self._results = results
        self._make = make_job
        self._foresee = foresee
        self._show = show
        self._flights: dict[str, tuple[Member, PlannedTrial]] = {}
        self._peeked: Job | None = None
        self._done: set[str] = set()
        self._ready: deque[Member] = deque()
        self._is_ready: set[int] = set()
        self._waiting_for: dict[int, list[Cell]] = {}  # search -> cells that take its winner
        for cell in layout.cells:
            if cell.search is not None:
                self._waiting_for.setdefault(id(cell.search), []).append(cell)
        self._panel_of = {
            id(cell): panel for panel in layout.panels for cell in (panel.reference, *panel.others)
        }
        self.total = sum(1 for _ in self.foreseen())
        """Jobs that will have been handed out, as far as one can see."""
        self._uncounted = {
            trial.trial_id
            for trial in layout.trials()
            if not (trial.ended or trial.is_open) and make_job(trial) is None
        }
        for member in (_Probes(layout.probes), *layout.members()):
            self._wake(member)

    def foreseen(self) -> Iterator[TrialSpec]:
        """What is to be run, as far as one can see: open trials are as they stand."""
        for trial in self._layout.trials():
            if not trial.ended and (trial.is_open or self._make(trial) is not None):
                yield trial.spec

    def report(self, job: Job, point: CurvePoint) -> bool:
        """Let a trial of a search go on if it is worth it, and any other trial."""
        member, trial = self._flights[job.job_id]
        if not isinstance(member, Search):
            return True
        goes_on = member.report(trial, point)
        self._show(member)
        return goes_on

    def _fresh(self) -> Job | None:
        job, self._peeked = self._peeked, None
        while job is None and self._ready:
            member = self._ready.popleft()
            trial = self._next_of(member)
            if trial is None:
                self._is_ready.discard(id(member))
                continue
            self._ready.append(member)  # behind the others
            job = None if trial.trial_id in self._done else self._make(trial)
            if job is None:  # known without running it
                if trial.trial_id not in self._uncounted:
                    self._expect(trial.spec, -1)
                self._settle(member, trial)
            else:
                self._flights[job.job_id] = member, trial
                if isinstance(member, Search):
                    self._show(member)
        return job

    def _has_fresh(self) -> bool:
        self._peeked = None if self._is_hopeless else self._fresh()
        return self._peeked is not None

    def _next_of(self, member: Member) -> PlannedTrial | None:
        if not isinstance(member, Search):
            return member.next()
        before = member.n_left
        trial = member.next()
        self._expect(member.template, member.n_left - before)  # points that were known
        if trial is None and member.is_ended:
            for cell in self._waiting_for.pop(id(member), ()):
                if cell.is_stuck:
                    self._expect(cell.template.spec, -len(cell.seeds))
                self._wake(cell)
        return trial

    def _settled(self, job: Job, outcome: Outcome) -> None:
        member, trial = self._flights.pop(job.job_id)
        is_search = isinstance(member, Search)
        told = FAILED
        if outcome.status != "failed" and (is_search or self._panel_of):
            stopped = member.stopped_at(trial) if isinstance(member, Search) else None
            told = self._results.after(job, stopped) or FAILED
        if isinstance(member, Search):
            member.settle(trial, told)
            self._show(member)
            if told.state == "done":
                self._done.add(trial.trial_id)
            self._wake(member)
        else:
            self._settle(member, trial)

    def _settle(self, member: Member, trial: PlannedTrial) -> None:
        """A reported trial has ended: perhaps a difference is seen to need more seeds."""
        if not isinstance(member, Cell):
            return
        member.settle(trial)
        panel = self._panel_of.get(id(member))
        for cell, seeds in panel.widen() if panel is not None else ():
            self._expect(cell.template.spec, len(seeds))
            self._wake(cell)

    def _wake(self, member: Member) -> None:
        if id(member) not in self._is_ready:
            self._is_ready.add(id(member))
            self._ready.append(member)

    def _expect(self, spec: TrialSpec, more: int) -> None:
        if more:
            self.total += more
            self._foresee(spec, more)
