"""One cell of the grid: waits for its search, then has its seeds run, one after the other."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sweep.grid import PlannedTrial, Template
from sweep.identity import trial_id
from sweep.search.search import Search
from trainables.spec import Request


class Cell:
    """A cell that is reported.

    Args:
        template: What it is.
        seeds: Seeds to report.
        search: Gives its hyper-parameters: its own search, or its reference's; None for none.
    """

    def __init__(
        self, template: Template, seeds: Sequence[int], search: Search | None = None
    ) -> None:
        self.template = template
        self.search = search
        self.seeds: list[int] = list(seeds)
        """All its seeds so far."""
        self._due: deque[int] = deque(seeds)
        self._ended: set[str] = set()
        self._trials: dict[int, PlannedTrial] = {}

    @property
    def request(self) -> Request:
        """What is measured on each of its trials."""
        return self.template.request

    @property
    def is_stuck(self) -> bool:
        """Its search has ended without a winner: there is nothing to report."""
        return self.search is not None and self.search.is_ended and self.search.winner is None

    def trials(self) -> Iterator[PlannedTrial]:
        """Its reported trials, open ones as long as the search has no winner."""
        for seed in self.seeds:
            trial = self.trial(seed)
            if trial is None:
                spec = replace(self.template.spec, seed=seed)
                trial = PlannedTrial(
                    trial_id="",
                    cell_id=self.template.cell_id,
                    spec=spec,
                    request=self.request,
                    is_open=True,
                )
            yield trial

    def trial(self, seed: int) -> PlannedTrial | None:
        """Its trial of one seed; None before the search has a winner."""
        if seed not in self._trials:
            hyper = self.template.spec.hyper
            if self.search is not None:
                point = self.search.winner
                if point is None:
                    return None
                hyper = replace(hyper, **point)  # type: ignore[arg-type] # checked by the study
            spec = replace(self.template.spec, hyper=hyper, seed=seed)
            self._trials[seed] = PlannedTrial(
                trial_id=trial_id(spec),
                cell_id=self.template.cell_id,
                spec=spec,
                request=self.request,
            )
        return self._trials[seed]

    def next(self) -> PlannedTrial | None:
        """The next trial to run; None when there is none now."""
        trial = self.trial(self._due[0]) if self._due else None
        if trial is not None:
            self._due.popleft()
        return trial

    def settle(self, trial: PlannedTrial) -> None:
        """Take note that a trial has ended, or has been known from the beginning."""
        self._ended.add(trial.trial_id)

    def has_ended(self, seeds: Sequence[int]) -> bool:
        """Whether the trials of these seeds have come to their ends."""
        trials = [self.trial(seed) for seed in seeds]
        return all(trial is not None and trial.trial_id in self._ended for trial in trials)

    def extend(self, seeds: Sequence[int]) -> list[int]:
        """Add seeds; returns those that are new."""
        new = [seed for seed in seeds if seed not in self.seeds]
        self.seeds += new
        self._due += new
        return new
