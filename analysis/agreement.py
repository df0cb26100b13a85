"""How well ours agree with what is published: by table, task and source; pure.

Doubtful printed numbers enter no figure of agreement; nor do printed means, whose rows are compared
in their place.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.against import Beside, Pair
from analysis.correlation import spearman
from analysis.reference.published import ADDRESS, Published

TOLERANCE = 0.02
"""Points (as a fraction) that every absolute comparison is allowed (PROTOCOLS §4)."""

_TASK, _TARGET, _EVAL_SET, _METRIC = (
    ADDRESS.index(name) for name in ("task", "target", "eval_set", "metric")
)
ITSELF = "itself"
"""In place of a source: every language by a model of its own."""

_Key = tuple[str, str, str]
"""Task, source, metric."""

_NOISE = 1e-9
_DECIMALS = 10
"""Kept before ranks are taken: noise of doubles is no rank."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well ours agree with one table on one task and source.

    Attributes:
        table, task, source, metric, encoder: What is compared; `ITSELF` for sources that were
            tested on themselves only.
        n_printed: Printed cells.
        n_missing: Those of which we have no number.
        n_left_out: Those that both have and that do not count: suspect cells, printed means.
        n_scores, scores_within: Scores compared, and those within the tolerance.
        n_deltas, deltas_within: The same of differences to the reference.
        n_signs, signs_agree: Differences whose printed sign is not 0, and those of the same sign.
        tolerance: Fraction.
        mean_off: Mean absolute difference of what is compared; NaN if nothing is.
        profile: Spearman's rho over ablations of the mean difference over targets; NaN if
            undefined.
        n_profile: Ablations, and targets that have all of them.
        profile_median: Median over targets of each target's own rho.
        targets: Spearman's rho over targets of reference scores, and how many.
    """

    table: str
    task: str
    source: str
    metric: str
    encoder: str
    n_printed: int
    n_missing: int
    n_left_out: int
    n_scores: int
    scores_within: int
    n_deltas: int
    deltas_within: int
    n_signs: int
    signs_agree: int
    tolerance: float
    mean_off: float
    profile: float
    n_profile: tuple[int, int]
    profile_median: float
    targets: tuple[float, int]


def agreements(tables: Sequence[Beside], published: Published) -> tuple[Agreement, ...]:
    """Agreement by table, task, source and metric, of tables of scores."""
    found = []
    for table in tables:
        groups: dict[_Key, list[Pair]] = defaultdict(list)
        for pair in table.pairs:
            query = pair.spot.query
            if query.kind == "score":
                groups[query.task, query.source, pair.spot.printed[_METRIC]].append(pair)
        found += [
            _agreement(table, key, pairs, published) for key, pairs in _joined(groups).items()
        ]
    return tuple(found)


def _joined(groups: Mapping[_Key, list[Pair]]) -> dict[_Key, list[Pair]]:
    """Sources tested on themselves only make one group: a line of one cell says little."""
    found: dict[_Key, list[Pair]] = {}
    for (task, source, metric), pairs in groups.items():
        is_own = all(pair.spot.printed[_TARGET] == source for pair in pairs)
        found.setdefault((task, ITSELF if is_own else source, metric), []).extend(pairs)
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a printed row whose label is in doubt (D-01).

    Attributes:
        table: Stem of its shape.
        head: The row, as the table has it.
        off: Mean absolute difference over its cells that both sides have.
        n: Those cells.
    """

    table: str
    head: str
    off: float
    n: int


def readings(tables: Sequence[Beside]) -> tuple[Reading, ...]:
    """How well each reading fits, of printed rows that a table reads in several ways."""
    found = []
    for table in tables:
        off: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(dict)
        for part in table.parts:
            for line in part.lines:
                if len(line.pairs) and not math.isnan(line.pairs[0].difference):
                    own = off[line.pairs[0].spot.printed].setdefault(line.head, [])
                    own += [abs(p.difference) for p in line.pairs if not math.isnan(p.difference)]
        heads: dict[str, list[float]] = defaultdict(list)
        for rows in off.values():
            if len(rows) > 1:
                for head, values in rows.items():
                    heads[head] += values
        found += [
            Reading(table.shape.name, head, sum(values) / len(values), len(values))
            for head, values in heads.items()
        ]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Delta:
    """A difference to the reference, both sides."""

    ours: float
    printed: float
    is_zero: bool


def _agreement(table: Beside, key: _Key, pairs: Sequence[Pair], published: Published) -> Agreement:
    both = [p for p in pairs if not math.isnan(p.difference) and p.is_like_for_like]
    counted = [p for p in both if not p.is_suspect and not p.spot.query.is_mean]
    if not any(not p.spot.query.is_mean for p in pairs):  # a table of averages only: they count
        counted = [p for p in both if not p.is_suspect]
    tolerance = max(TOLERANCE, 3 * published.largest_sd(pairs[0].spot.printed[_TASK]))
    scores = [p for p in counted if p.printed and not p.printed.is_delta]
    scores = [p for p in scores if p.printed and not p.printed.is_relative]
    deltas = _deltas(counted)
    flat = [delta for line in deltas.values() for delta in line.values()]
    off = [abs(p.difference) for p in scores] + [
        abs(p.difference) for p in counted if p.printed and p.printed.is_delta
    ]
    signs = [d for d in flat if not d.is_zero]
    profile, n_profile, median = _profile(deltas)
    printed = {p.spot.printed for p in pairs if p.printed is not None}
    there = {p.spot.printed for p in both}
    return Agreement(
        table.shape.name,
        *key,
        table.encoder,
        n_printed=len(printed),
        n_missing=len(printed - there),
        n_left_out=len(both) - len(counted),
        n_scores=len(scores),
        scores_within=sum(abs(p.difference) <= tolerance + _NOISE for p in scores),
        n_deltas=len(flat),
        deltas_within=sum(abs(d.ours - d.printed) <= tolerance + _NOISE for d in flat),
        n_signs=len(signs),
        signs_agree=sum(d.ours * d.printed > 0 for d in signs),
        tolerance=tolerance,
        mean_off=sum(off) / len(off) if off else math.nan,
        profile=profile,
        n_profile=n_profile,
        profile_median=median,
        targets=_targets(counted),
    )


def _deltas(counted: Sequence[Pair]) -> dict[tuple[str, str], dict[str, _Delta]]:
    """(target, test set) -> ablation -> difference; from scores where scores are printed."""
    lines: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in counted:
        printed = pair.spot.printed
        lines[printed[_TARGET], printed[_EVAL_SET]].append(pair)
    found: dict[tuple[str, str], dict[str, _Delta]] = {}
    for key, line in lines.items():
        reference = next((p for p in line if p.spot.query.ablation == "ref"), None)
        own: dict[str, _Delta] = {}
        for pair in line:
            if pair is reference or pair.ours is None or pair.printed is None:
                continue
            loss = pair.printed.value
            if not pair.printed.is_delta:
                if reference is None or reference.printed is None:
                    continue
                loss -= reference.printed.value
            if not math.isnan(pair.ours.difference):
                ours = pair.ours.difference
                own[pair.spot.query.ablation] = _Delta(ours, loss, abs(loss) < _NOISE)
        if own:
            found[key] = own
    return found


def _profile(
    deltas: Mapping[tuple[str, str], Mapping[str, _Delta]],
) -> tuple[float, tuple[int, int], float]:
    """Rank correlation over ablations: of the mean over complete targets, its size, the median."""
    names = sorted({name for line in deltas.values() for name in line})
    whole = [line for line in deltas.values() if len(line) == len(names)]
    if not whole:
        return math.nan, (len(names), 0), math.nan
    ours = np.array([[line[name].ours for name in names] for line in whole]).round(_DECIMALS)
    printed = np.array([[line[name].printed for name in names] for line in whole]).round(_DECIMALS)
    own = spearman(ours, printed)
    own = own[~np.isnan(own)]
    mean = spearman(ours.mean(axis=0).round(_DECIMALS), printed.mean(axis=0).round(_DECIMALS))
    median = float(np.median(own)) if len(own) else math.nan
    return float(mean), (len(names), len(whole)), median


def _targets(counted: Sequence[Pair]) -> tuple[float, int]:
    """Rank correlation over targets of what the reference scores."""
    rows = [
        (p.value, p.printed.value)
        for p in counted
        if p.printed and p.spot.query.ablation == "ref" and not p.printed.is_delta
    ]
    if len(rows) < 3:  # noqa: PLR2004 - correlation.LEAST
        return math.nan, len(rows)
    ours, printed = np.array(rows).T.round(_DECIMALS)
    return float(spearman(ours, printed)), len(rows)
