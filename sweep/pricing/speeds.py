"""How long jobs take: counted work at assumed speed, corrected by what was measured; pure.

For each part of a trial (training, looking at files, the rest) the logarithm of measured over
modelled seconds is a sum of effects - of the device, the task, the task in one source language,
the kind of ablation, the batch size - each drawn from a normal distribution of known spread, plus
noise:

    log(measured / modelled) = sum of the effects of a job + noise

That is Bayesian linear regression (Gelman et al., BDA3, section 14.8; effects shrink to zero where
little was measured). Before the first trial the forecast is the model with its whole doubt; every
measured trial narrows it for its own kind and, through the shared effects, for the others.

A machine that others use, or that grows hot, is not always as fast: trials on a CPU say how long a
fixed piece of arithmetic took beside them (`trainables.pace`), and are compared as if all had run
at one pace. The rest is expected at the pace of the latest trials; how much it differed between
trials is part of the doubt.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from sweep.pricing.devices import CPU, Device, device_named
from sweep.pricing.paces import paces_of
from sweep.pricing.work import Reckoner
from sweep.rows import spec_from_json
from trainables.spec import Request, TrialSpec

PARTS = ("train", "evaluate", "fixed")
"""Parts of a trial that are forecast apart."""

_SPREADS = {"device": 0.6, "task": 0.3, "source": 0.2, "ablation": 0.15, "batch": 0.1}
"""Standard deviation of each kind of effect, on the log scale: 0.6 is a factor of 1.8."""

_NOISE = 0.15
"""Standard deviation of one trial around its kind, before any was measured."""

_NOISE_WEIGHT = 4.0
"""Trials that `_NOISE` counts for against the measured spread."""

_COLD = 1.08
"""How much longer the first training of a process takes on a CPU. Measured: 1.05 to 1.18 in four
studies of one day."""

_MAY_WONDER = 0.2
"""Spread of the pace from which on a forecast says that the machine is not steady."""

_DRAWS = 400
"""Draws behind an interval."""

_QUANTILES = (5.0, 95.0)

_LEAST = 0.05
"""Shorter parts, in seconds, are taken for this long: how much shorter is rounding and noise."""

_UNKNOWN = float("nan")

Effects = tuple[str, ...]
"""Names of the effects that a job has, such as `task=upos`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A number with its 90 % interval."""

    mean: float
    low: float
    high: float

    def scaled(self, by: float) -> "Interval":
        """The same in other units."""
        return Interval(mean=self.mean * by, low=self.low * by, high=self.high * by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Jobs that are forecast alike.

    Attributes:
        effects: What they have in common with others.
        seconds: Modelled seconds by part, in the order of `PARTS`.
    """

    effects: Effects
    seconds: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Expected durations of jobs.

    Attributes:
        seconds: Expected seconds of each job, in the order asked.
        total: Of all jobs one after the other, with its interval.
        noise: Standard deviation of one job around its expectation, on the log scale.
        n_measured: Trials that the forecast learnt from.
        is_other_device: All of them ran on another kind of device.
        doubts: What had to be assumed, in words.
    """

    seconds: tuple[float, ...]
    total: Interval
    noise: float
    n_measured: int
    is_other_device: bool
    doubts: tuple[str, ...]


class Speeds:
    """What is known of the speed of a study's trials.

    Args:
        trials: Rows of the `trials` table; empty before anything was measured.
        asked: Trial id -> what the study asks of that trial. Of trials that are not among them,
            only the training is comparable.
    """

    def __init__(self, trials: pa.Table, asked: Mapping[str, Request]) -> None:
        self._reckoner = Reckoner()
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._means: dict[Kind, float] = {}
        self._devices: set[str] = set()
        self._pace, self._drift = paces_of(trials)
        measured = list(self._measured(trials, asked))
        self._n_measured = len(measured)
        self._parts = [
            _fit([(kind.effects, kind.seconds[at], seconds[at]) for kind, seconds in measured])
            for at in range(len(PARTS))
        ]

    def forecast(
        self, jobs: Iterable[tuple[TrialSpec, Request, bool]], device: Device, share: float
    ) -> Forecast:
        """Expect durations.

        Args:
            jobs: Each trial, what is to be measured on it, and whether it is trained.
            device: What each runs on.
            share: Its share of a GPU, or its number of cores.
        """
        kinds: dict[Kind, int] = {}
        index = np.array(
            [
                kinds.setdefault(self._kind(*job, device=device, share=share), len(kinds))
                for job in jobs
            ],
            int,
        )
        counts = np.bincount(index, minlength=len(kinds)).astype(float)
        drift = self._drift if device.name == CPU else 0.0
        mean, total, noise = self._expect(list(kinds), counts, drift)
        return Forecast(
            seconds=tuple(mean[index].tolist()),
            total=total,
            noise=noise,
            n_measured=self._n_measured,
            is_other_device=bool(self._devices) and device.name not in self._devices,
            doubts=(*self._reckoner.doubts, *_unsteady(drift)),
        )

    def seconds(
        self, spec: TrialSpec, request: Request, *, trains: bool, device: Device, share: float
    ) -> float:
        """Expected seconds of one job; see `forecast`."""
        kind = self._kind(spec, request, trains, device=device, share=share)
        if kind not in self._means:
            self._means[kind] = float(self._expect([kind], np.ones(1), 0.0)[0][0])
        return self._means[kind]

    def _expect(
        self, kinds: Sequence[Kind], counts: Float[np.ndarray, " kinds"], drift: float
    ) -> tuple[Float[np.ndarray, " kinds"], Interval, float]:
        """Mean seconds of each kind, their sum over all jobs, and the spread of one job.

        The parts draw the same normal numbers: what makes one of them slow makes all slow. That
        is the cautious choice, and makes the interval no narrower than it should be.
        """
        groups = list(dict.fromkeys(kind.effects for kind in kinds))
        place = {effects: i for i, effects in enumerate(groups)}
        of = np.array([place[kind.effects] for kind in kinds], int)
        mean, variance = np.zeros(len(kinds)), np.zeros(len(kinds))
        totals = np.zeros(_DRAWS)
        for at, part in enumerate(self._parts):
            centre, drawn = part.predict(groups)
            grown = float(np.exp(part.noise**2 / 2))  # mean of a log-normal over its median
            modelled = np.array([kind.seconds[at] for kind in kinds]) * grown
            weights = np.bincount(of, weights=modelled * counts, minlength=len(groups))
            totals += drawn @ weights
            mean += modelled * centre[of]
            variance += (modelled * centre[of]) ** 2 * np.expm1(part.noise**2)
        totals *= np.exp(np.random.default_rng(2).standard_normal(_DRAWS) * drift)
        doubt = float(np.sqrt(np.sum(counts * variance)))
        totals += np.random.default_rng(1).standard_normal(_DRAWS) * doubt
        expected = float(mean @ counts)
        low, high = (float(value) for value in np.percentile(totals, _QUANTILES))
        square = float(np.sum(counts * mean**2))
        noise = float(np.sqrt(np.log1p(doubt**2 / square))) if square else 0.0
        interval = Interval(mean=expected, low=min(low, expected), high=max(high, expected))
        return mean, interval, noise

    def _kind(
        self, spec: TrialSpec, request: Request, trains: bool, *, device: Device, share: float
    ) -> Kind:
        key = self._reckoner.key(spec, request, trains=trains)
        key = (*key, spec.precision, device.name, share)
        if key not in self._kinds:
            work = self._reckoner.work(spec, request, trains=trains)
            self._kinds[key] = Kind(
                effects=_effects(spec, device.name),
                seconds=(
                    device.seconds(work.train, spec.precision, share),
                    device.seconds(work.evaluate, spec.precision, share),
                    work.fixed_s,
                ),
            )
        return self._kinds[key]

    def _measured(
        self, trials: pa.Table, asked: Mapping[str, Request]
    ) -> Iterator[tuple[Kind, tuple[float, float, float]]]:
        """Trials that were trained whole, in one go: their kind, and seconds by part.

        Seconds are those that each would have taken at the pace that is expected of the rest.
        """
        columns = [
            *("trial_id", "commit_id", "spec", "status", "kind", "device", "threads", "gpu_share"),
            "resumed_epochs",
            *("load_s", "train_s", "evaluate_s", "similarity_s"),
        ]
        nothing = Request()
        cold = _first_of_workers(trials)
        rows = trials.select(columns).to_pylist()
        warm = {row["device"] for row in rows if row["commit_id"] not in cold}
        for row in rows:
            device = device_named(row["device"] or "")
            is_whole = row["status"] == "done" and row["kind"] == "train"
            if not is_whole or row["resumed_epochs"] or row["train_s"] is None or device is None:
                continue
            spec = spec_from_json(row["spec"])
            request = asked.get(row["trial_id"])
            share = float(row["threads"] or 1) if device.name == CPU else row["gpu_share"] or 1.0
            self._devices.add(device.name)
            kind = self._kind(
                spec, request or nothing, spec.train is not None, device=device, share=share
            )
            looked = row["evaluate_s"] if request else _UNKNOWN
            is_telling = request and row["commit_id"] not in cold
            rest = row["load_s"] + row["similarity_s"] if is_telling else _UNKNOWN
            # A process's first steps on a GPU wait for its kernels to be loaded.
            is_slow = device.name != CPU and row["commit_id"] in cold and row["device"] in warm
            pace = self._pace.get(row["commit_id"], 1.0)
            train = _UNKNOWN if is_slow else row["train_s"]
            if device.name == CPU and row["commit_id"] in cold:
                train /= _COLD
            yield kind, (train / pace, looked / pace, rest / pace)


def _first_of_workers(trials: pa.Table) -> set[str]:
    """Commits of the first trial of each worker process: it waited for imports and the encoder."""
    columns = (trials.column(name).to_pylist() for name in ("started", "commit_id", "host", "pid"))
    first: dict[tuple[str, int], str] = {}
    known = (row for row in zip(*columns, strict=True) if None not in row)
    for _, commit_id, host, pid in sorted(known):
        first.setdefault((host, pid), commit_id)
    return set(first.values())


def _unsteady(drift: float) -> Iterator[str]:
    """What to say of machines whose pace changed by much."""
    if drift > _MAY_WONDER:
        yield (
            f"the machine's pace varied by {np.expm1(drift):.0%} between trials (other users, "
            "heat?), and the rest is expected at that of the latest"
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """What was learnt of one part of a trial.

    Attributes:
        names: Effects that were measured -> place in `mean`.
        mean: Their means after the data.
        root: A square root of their covariance: `root @ root.T`.
        noise: Standard deviation of a trial around its kind.
    """

    names: Mapping[str, int] = field(default_factory=dict)
    mean: Float[np.ndarray, " effects"] = field(default_factory=lambda: np.zeros(0))
    root: Float[np.ndarray, "effects effects"] = field(default_factory=lambda: np.zeros((0, 0)))
    noise: float = _NOISE

    def predict(
        self, groups: Sequence[Effects]
    ) -> tuple[Float[np.ndarray, " groups"], Float[np.ndarray, "draws groups"]]:
        """Measured over modelled seconds of each group: the median, and draws of it.

        Effects that were never measured are drawn from their own spread around zero.
        """
        unseen = sorted({name for group in groups for name in group} - set(self.names))
        names = dict(self.names) | {name: len(self.names) + i for i, name in enumerate(unseen)}
        mean = np.concatenate([self.mean, np.zeros(len(unseen))])
        normal = np.random.default_rng(0).standard_normal((_DRAWS, len(names)))
        n = len(self.names)
        effects = np.concatenate(
            [normal[:, :n] @ self.root.T, normal[:, n:] * np.array([*map(_spread, unseen)])], axis=1
        )
        design = np.zeros((len(groups), len(names)))
        for row, group in enumerate(groups):
            design[row, [names[name] for name in group]] = 1.0
        centre = design @ mean
        return np.exp(centre), np.exp(centre + effects @ design.T)


def _fit(rows: Sequence[tuple[Effects, float, float]]) -> _Part:
    """Learn effects and noise from (effects, modelled seconds, measured seconds).

    With prior `N(0, S)` of the effects and noise `s`, their posterior covariance is
    `(S^-1 + X'X / s^2)^-1` and their mean that times `X'y / s^2`. The noise is estimated from the
    residuals, with the degrees of freedom that the effects leave, and drawn to its prior.
    """
    told = [
        (e, np.log(max(real, _LEAST) / model))
        for e, model, real in rows
        if model > _LEAST and not np.isnan(real)
    ]
    if not told:
        return _Part()
    names = {name: i for i, name in enumerate(sorted({name for e, _ in told for name in e}))}
    gram, right, square = np.zeros((len(names), len(names))), np.zeros(len(names)), 0.0
    for effects, ratio in told:
        at = [names[name] for name in effects]
        gram[np.ix_(at, at)] += 1.0
        right[at] += ratio
        square += float(ratio) ** 2
    prior = np.diag([_spread(name) ** -2 for name in names])
    noise = _NOISE
    for _ in range(5):
        covariance = np.linalg.inv(prior + gram / noise**2)
        mean = covariance @ right / noise**2
        residual = square - 2 * float(right @ mean) + float(mean @ gram @ mean)
        free = max(0.0, len(told) - float(np.trace(covariance @ gram)) / noise**2)
        noise = float(
            np.sqrt((_NOISE_WEIGHT * _NOISE**2 + max(0.0, residual)) / (_NOISE_WEIGHT + free))
        )
    return _Part(names, mean, np.linalg.cholesky(covariance), noise)


def _spread(name: str) -> float:
    return _SPREADS[name.partition("=")[0]]


def _effects(spec: TrialSpec, device: str) -> Effects:
    """What a trial has in common with others."""
    family = re.sub(r":[^+]*", "", spec.ablation)
    return (
        f"device={device}",
        f"task={spec.task}",
        f"source={spec.task}/{spec.source}",
        f"ablation={family}",
        f"batch={spec.hyper.batch_size}",
    )
