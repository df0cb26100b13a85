"""One search: which points it has asked for, what became of them, what it asks next."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sweep.grid import PlannedTrial
from sweep.identity import search_id, seed_of, trial_id
from sweep.search.log import Log
from sweep.search.pruning import rungs, survives_halving, survives_median
from sweep.search.results import Results, Told
from sweep.search.sampler import Tried, propose
from sweep.space import Point, Space
from trainables.spec import CurvePoint, Request, TrialSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a search goes about; see `sweep.sections.SearchSection`.

    Attributes:
        method: How points are chosen.
        space: Of what.
        n: How many.
        seed: Of its trials.
        at_once: Most of its trials that run at a time, if later points depend on earlier ones.
        prune: Which trials are stopped early.
        grace: Epochs that every trial gets.
        reduction: One trial in so many passes a rung.
    """

    method: Literal["grid", "random", "tpe", "gp"]
    space: Space
    n: int
    seed: int = 0
    at_once: int = 4
    prune: Literal["off", "asha", "median"] = "off"
    grace: int = 1
    reduction: int = 3


class Search:
    """One search, from its first point to its winner.

    Points come in an order of their own: the k-th one depends on the search, on k, and (`tpe`,
    `gp`) on what is known when it is asked for. All are in the log before they are handed out.

    Args:
        rules: How it goes about.
        template: A trial of the searched cell; its searched values and its seed play no part.
        cell: Id of that cell.
        request: What is measured on each trial.
        log: Keeps points.
        results: Knows ends.
    """

    def __init__(
        self,
        rules: Rules,
        template: TrialSpec,
        cell: str,
        request: Request,
        *,
        log: Log,
        results: Results,
    ) -> None:
        self.rules = rules
        self.template = template
        self.cell = cell
        self._request = request
        self._log = log
        self._results = results
        decides = {
            "method": rules.method,
            "space": rules.space.as_json(),
            "seed": rules.seed,
            "prune": [rules.prune, rules.grace, rules.reduction] if rules.prune != "off" else [],
        }
        self.search_id = search_id(template, rules.space.axes.keys(), decides)
        """What decides its points, hashed; how many they are does not."""
        self._trials: list[PlannedTrial] = []
        self._points: list[Point] = []
        self._asked: dict[str, list[int]] = {}  # trial id -> which points: a point may come again
        self._told: dict[str, Told] = {}
        self._live: dict[str, dict[int, float]] = {}  # curves of trials that run
        self._stopped: dict[str, int] = {}
        self._due: deque[str] = deque()
        self._flying: set[str] = set()
        self._before: list[tuple[Point, PlannedTrial]] = []
        self._is_prepared = False

    @property
    def is_ended(self) -> bool:
        """All points were asked for, and the trial of each has come to its end."""
        self._prepare()
        return len(self._points) == self.rules.n and len(self._told) == len(self._asked)

    @property
    def n_left(self) -> int:
        """Trials that have still to come to their ends, as far as one can see."""
        self._prepare()
        return self.rules.n - len(self._points) + len(self._asked) - len(self._told)

    @property
    def winner(self) -> Point | None:
        """The point with the best score on source dev, the first of equals; None without one."""
        best = self.best
        return None if best is None else self._points[best]

    @property
    def best(self) -> int | None:
        """Which point that is. Trials that were stopped early do not compete."""
        if not self.is_ended:
            return None
        done = [
            (-told.value, k)
            for k, trial in enumerate(self._trials)
            if (told := self._told[trial.trial_id]).state == "done"
        ]
        return min(done)[1] if done else None

    @property
    def tried(self) -> tuple[tuple[PlannedTrial, Point, Told | None], ...]:
        """All points so far, in order, with their trials and ends."""
        self._prepare()
        told = [self._told.get(trial.trial_id) for trial in self._trials]
        return tuple(zip(self._trials, self._points, told, strict=True))

    def trials(self) -> Iterator[PlannedTrial]:
        """Its trials, each once; those that are not asked for yet are left open."""
        seen: set[str] = set()
        for trial, _, told in self.tried:
            if trial.trial_id not in seen:
                seen.add(trial.trial_id)
                yield trial if told is None else replace(trial, ended=told.state)
        stand_in = self._trial(self.rules.space.middle())
        for _ in range(self.rules.n - len(self._points)):
            yield replace(stand_in, trial_id="", is_open=True)

    def next(self) -> PlannedTrial | None:
        """The next trial to run; None when there is none now.

        Raises:
            StorageError: the log cannot be written; nothing was handed out.
        """
        self._prepare()
        while not self._due:
            depends = self.rules.method in {"tpe", "gp"}
            if len(self._points) >= self.rules.n:
                return None
            if depends and len(self._flying) >= self.rules.at_once:
                return None
            self._ask()
        trial = self._due.popleft()
        self._flying.add(trial)
        return self._trials[self._asked[trial][0]]

    def report(self, trial: PlannedTrial, point: CurvePoint) -> bool:
        """Take note of an epoch; False stops the trial for good."""
        own = self._live.setdefault(trial.trial_id, {})
        own[point.epoch] = point.dev_value
        if self._goes_on(trial.trial_id, own, point.epoch, trial.spec.hyper.epochs):
            return True
        self._stopped[trial.trial_id] = point.epoch
        return False

    def curve(self, trial: PlannedTrial) -> Mapping[int, float]:
        """Scores of a running trial so far, by epoch."""
        return dict(self._live.get(trial.trial_id, {}))

    def stopped_at(self, trial: PlannedTrial) -> int | None:
        """The epoch after which `report` stopped a trial."""
        return self._stopped.get(trial.trial_id)

    def settle(self, trial: PlannedTrial, told: Told) -> None:
        """Take note of a trial's end."""
        self._flying.discard(trial.trial_id)
        self._live.pop(trial.trial_id, None)
        self._told[trial.trial_id] = told

    def asked_before(self) -> tuple[str, ...]:
        """Ids of the trials whose points are settled already, whatever became of them."""
        if not self._is_prepared and not self._before:
            if self.rules.method == "grid":
                points = list(self.rules.space.grid())
            elif self.rules.method == "random":
                points = [self._draw(k) for k in range(self.rules.n)]
            else:
                points = list(self._log.read(self.search_id))[: self.rules.n]
            self._before = [(point, self._trial(point)) for point in points]
        return tuple(trial.trial_id for _, trial in self._before)

    def _prepare(self) -> None:
        """Take up what is known: points that a driver before this one asked for, and their ends."""
        if self._is_prepared:
            return
        self.asked_before()
        self._is_prepared = True
        for point, trial in self._before:
            self._take(point, trial)
        self._before.clear()

    def _ask(self) -> None:
        """Find the next point, and write it down."""
        tried: list[Tried] = [(point, told) for _, point, told in self.tried]
        method = self.rules.method
        assert method != "grid"  # noqa: S101 - its points are all there from the beginning
        point = propose(method, self.rules.space, tried, self._seed(len(tried)))
        self._log.write(self.search_id, [*self._points, point])
        self._take(point, self._trial(point))

    def _take(self, point: Point, trial: PlannedTrial) -> None:
        """Add a point; one that was tried before costs nothing."""
        asked = self._asked.setdefault(trial.trial_id, [])
        asked.append(len(self._points))
        self._points.append(point)
        self._trials.append(trial)
        if len(asked) > 1:
            return
        told = self._results.of(trial.trial_id)
        if told is None:
            self._due.append(trial.trial_id)
        else:
            self._told[trial.trial_id] = told

    def _trial(self, point: Point) -> PlannedTrial:
        hyper = replace(self.template.hyper, **point)  # type: ignore[arg-type] # checked by the study
        spec = replace(self.template, hyper=hyper, seed=self.rules.seed)
        return PlannedTrial(
            trial_id=trial_id(spec),
            cell_id=self.cell,
            spec=spec,
            request=self._request,
            phase="search",
        )

    def _draw(self, k: int) -> Point:
        return propose("random", self.rules.space, [], self._seed(k))

    def _seed(self, k: int) -> int:
        return seed_of(self.search_id, k)

    def _goes_on(self, trial: str, own: dict[int, float], epoch: int, epochs: int) -> bool:
        rules = self.rules
        if rules.prune == "off" or epoch >= epochs:
            return True
        curves = {i: told.curve for i, told in self._told.items() if told.state != "failed"}
        others = [curve for i, curve in {**curves, **self._live}.items() if i != trial]
        if rules.prune == "median":
            return epoch < rules.grace or survives_median(own, epoch, others)
        if epoch not in rungs(epochs, rules.grace, rules.reduction):
            return True
        at_rung = [curve[epoch] for curve in others if epoch in curve]
        return survives_halving(own[epoch], at_rung, rules.reduction)
