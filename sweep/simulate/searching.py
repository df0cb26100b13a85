"""Searches and adaptive seeds in a rehearsal: the real deciding code on made-up scores.

A made-up trial learns as real ones do: its dev score rises towards a ceiling that falls with the
square of the distance of each searched value from a best one, drawn for its cell; a seed moves it a
little, each epoch more so. Nothing of it says anything about the languages: only about time.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from sweep.grid import PlannedTrial
from sweep.identity import seed_of
from sweep.resolve import Resolved
from sweep.schedule import Schedule
from sweep.search.layout import lay_out
from sweep.search.log import Log, MemoryLog
from sweep.search.results import RehearsedResults, Results, Score, Told
from sweep.search.schedule import SearchSchedule
from sweep.space import Point
from sweep.study import Study
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job

_METRIC = "made-up"
_SEARCHED = ("learning_rate", "batch_size", "warmup", "weight_decay")
_TOP, _DEPTH = 0.95, 0.02  # best score; what a factor of ten from the best value costs
_SEED_SD, _EPOCH_SD = 0.005, 0.002
_TARGET_SD = 0.01  # of a seed, on the mean of other languages

MakeJob = Callable[[PlannedTrial], Job | None]


class _Over:
    """Points of a real search below, those of the rehearsal on top; the store stays as it is."""

    def __init__(self, below: Log) -> None:
        self._below = below
        self._own = MemoryLog()

    def read(self, search_id: str) -> tuple[Point, ...]:
        """Of this rehearsal, else of before."""
        return self._own.read(search_id) or self._below.read(search_id)

    def write(self, search_id: str, points: Sequence[Point]) -> None:
        """Into memory."""
        self._own.write(search_id, points)


class _Both(RehearsedResults):
    """Ends that are committed, and those of the rehearsal."""

    def __init__(self, committed: Results | None) -> None:
        super().__init__()
        self._committed = committed

    def of(self, trial_id: str) -> Told | None:
        """See `Results`."""
        told = super().of(trial_id)
        return told or (self._committed.of(trial_id) if self._committed else None)

    def scores(self, trial_id: str) -> Mapping[Score, float]:
        """See `Results`."""
        own = super().scores(trial_id)
        return own or (self._committed.scores(trial_id) if self._committed else {})


class Rehearsal(Schedule):
    """A search schedule that is told made-up ends.

    Args:
        study: The study.
        resolved: Its files, there or imagined.
        make_job: The job of a trial; None when nothing of it is left to do.
        log: Points of real searches so far.
        results: Real ends so far.
    """

    def __init__(
        self,
        study: Study,
        resolved: Resolved,
        make_job: MakeJob,
        *,
        log: Log | None = None,
        results: Results | None = None,
    ) -> None:
        self._results = _Both(results)
        layout = lay_out(study, resolved, log=_Over(log or MemoryLog()), results=self._results)
        layout.decide(lambda trial: make_job(trial) is None)
        self._inner = SearchSchedule(layout, self._results, make_job)
        self._curves: dict[str, dict[int, float]] = {}
        self._metric = (study.seeds.until.metric if study.seeds.until else "") or _METRIC

    @property
    def total(self) -> int:
        """As of the schedule."""
        return self._inner.total

    @property
    def lost(self) -> Mapping[str, Job]:
        """As of the schedule."""
        return self._inner.lost

    def next(self) -> Job | None:
        """As of the schedule."""
        return self._inner.next()

    def is_done(self) -> bool:
        """As of the schedule."""
        return self._inner.is_done()

    def report(self, job: Job, point: CurvePoint) -> bool:
        """Note the epoch; let the schedule decide."""
        self._curves.setdefault(job.job_id, {})[point.epoch] = point.dev_value
        return self._inner.report(job, point)

    def finished(self, job: Job, outcome: Outcome) -> bool:
        """Make up what the trial committed, then tell the schedule that it ended."""
        if outcome.status != "failed":
            told = Told(outcome.status, self._curves.pop(job.job_id, {}), _METRIC)
            self._results.say(job.trial_id, told, dict(_scores(job, self._metric)))
        return self._inner.finished(job, outcome)


def curve(job: Job) -> list[CurvePoint]:
    """The made-up training curve of a job; none for one that trains nothing."""
    spec, hyper = job.spec, asdict(job.spec.hyper)
    if spec.train is None:
        return []
    own = _random(job.trial_id)
    best = _random(f"{spec.task}/{spec.source}/{spec.ablation}")
    ceiling = _TOP + _SEED_SD * own.standard_normal()
    for name in _SEARCHED:
        wanted = {"learning_rate": -4.3, "batch_size": 1.3}.get(name, -1.5)
        wanted += 0.3 * best.standard_normal()
        if hyper[name] > 0:
            ceiling -= _DEPTH * (math.log10(hyper[name]) - wanted) ** 2
    return [
        CurvePoint(
            step=epoch,
            epoch=epoch,
            loss=1 / epoch,
            dev_metric=_METRIC,
            dev_value=ceiling * (1 - math.exp(-1.5 * epoch)) + _EPOCH_SD * own.standard_normal(),
            learning_rate=hyper["learning_rate"],
        )
        for epoch in range(1, spec.hyper.epochs + 1)
    ]


def _scores(job: Job, metric: str) -> Iterator[tuple[Score, float]]:
    """Scores on the targets, of which adaptive seeds look at the spread."""
    random = _random(f"targets {job.trial_id}")
    own = _TARGET_SD * random.standard_normal()
    for ref in job.request.targets:
        yield (ref.key, metric), 0.7 + own + _EPOCH_SD * random.standard_normal()


def _random(name: str) -> np.random.Generator:
    """Numbers of a name's own, the same in every rehearsal."""
    return np.random.default_rng(seed_of(name, 0))
