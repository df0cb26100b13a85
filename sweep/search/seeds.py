"""Seeds where they are needed: after the first ones of a cell and its reference, how many more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import nan

import numpy as np

from analysis.enough import seeds_wanted
from sweep.grid import REFERENCE, PlannedTrial
from sweep.search.cell import Cell
from sweep.search.results import Results
from trainables.spec import DataRef, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """When a difference has had seeds enough; see `sweep.sections.UntilSection`.

    Attributes:
        first: Seeds that every cell gets; their spread decides.
        more: Seeds that may be added, in this order.
        half_width: Wanted half width of the interval of a difference.
        metric: Of which it is taken; empty for what the best epoch is selected by.
        targets: Only these languages or test sets; empty for all.
    """

    first: tuple[int, ...]
    more: tuple[int, ...]
    half_width: float
    metric: str = ""
    targets: tuple[str, ...] = ()


def further_seeds(first: Sequence[int], search: int, most: int) -> tuple[int, ...]:
    """The seeds after the first ones, up to `most` in all: the next whole numbers.

    Args:
        first: Seeds of every cell.
        search: Seed of the search, which is left out.
        most: Most seeds.
    """
    free = (seed for seed in count(max(first) + 1) if seed != search)
    return tuple(islice(free, max(0, most - len(first))))


@dataclass(slots=True)
class Panel:
    """The cells of one task and source: a reference, and what is held against it.

    Attributes:
        reference: Cell of the reference.
        others: Cells of ablations.
        until: The rule.
        results: Knows scores.
    """

    reference: Cell
    others: tuple[Cell, ...]
    until: Until
    results: Results
    _decided: set[str] = field(default_factory=set)

    def widen(self) -> Iterator[tuple[Cell, list[int]]]:
        """Cells that get more seeds now, with these seeds; each cell is decided once."""
        first = self.until.first
        if not self.reference.has_ended(first):
            return
        for cell in self.others:
            name = cell.template.cell_id
            if name in self._decided or not cell.has_ended(first):
                continue
            self._decided.add(name)
            every = (*first, *self.until.more)
            n = seeds_wanted(self.differences(cell), self.until.half_width, len(every))
            for grown in (cell, self.reference):
                new = grown.extend(every[:n])
                if new:
                    yield grown, new

    def differences(self, cell: Cell) -> np.ndarray:
        """Cell less reference of each first seed, mean over targets; NaN where one failed."""
        pairs = ((self._score(cell, s), self._score(self.reference, s)) for s in self.until.first)
        return np.array([ablated - reference for ablated, reference in pairs])

    def _score(self, cell: Cell, seed: int) -> float:
        trial = cell.trial(seed)
        return nan if trial is None else transfer(self.results, trial, self.until)


def transfer(results: Results, trial: PlannedTrial, until: Until) -> float:
    """Mean score of a trial on its targets in other languages than the source; NaN unless whole."""
    told = results.of(trial.trial_id)
    if told is None or told.state != "done":
        return nan
    metric = until.metric or told.metric
    scores = results.scores(trial.trial_id)
    keys = [(ref.key, metric) for ref in counted(trial.request, trial.spec.source, until)]
    values = [scores.get(key, nan) for key in keys]
    return sum(values) / len(values) if values else nan


def counted(request: Request, source: str, until: Until) -> list[DataRef]:
    """The targets that a difference is taken over."""
    return [
        ref
        for ref in request.targets
        if ref.language != source
        and (not until.targets or {ref.language, ref.code} & set(until.targets))
    ]


def is_reference(cell: Cell) -> bool:
    """Whether a cell is what others are held against."""
    return cell.template.spec.ablation == REFERENCE
