"""Our number for a cell of a printed table: means over seeds, targets, treebanks; pure.

Differences are paired by seed. A mean over targets is there only if all of them are; treebanks
that one printed target stands for are pooled by their words.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float

from analysis import gaps, labels
from analysis.blocks import Lineup
from analysis.cells import Column, Scored
from analysis.evidence import Alignment
from analysis.intervals import t_intervals
from analysis.profiles import Profile
from analysis.reference.shapes import Query
from analysis.roster import Roster, Setting
from analysis.sheets import Number

_HYPER = {
    "best_batch_size": "batch_size", "best_learning_rate": "learning_rate", "best_epochs": "epochs",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """Our side of a cell.

    Attributes:
        number: As it stands in the cell.
        difference: To the reference, unrounded; NaN for the reference itself, or without one.
    """

    number: Number
    difference: float = math.nan


@dataclass(frozen=True, slots=True)
class Results:
    """All scores of one lineup, dev and test, every metric.

    Attributes:
        lineup: Whose.
        setting: What its trials share.
        columns: What was scored.
        values: Fractions; NaN where there is none.
        n: Items in each column's denominator.
        matched: What was looked up before, and
        rows: what was computed before: the cells of a printed row share it.
    """

    lineup: Lineup
    setting: Setting
    columns: tuple[Column, ...]
    values: Float[np.ndarray, "a c s"]
    n: Float[np.ndarray, " c"]
    matched: dict[tuple[str, str, str], tuple[int, ...]] = field(default_factory=dict)
    rows: dict[tuple[tuple[int, ...], ...], "RowOfOurs"] = field(default_factory=dict)

    def matching(self, pattern: str, split: str, metric: str) -> tuple[int, ...]:
        """Columns of the test sets that a pattern names, each test set once."""
        key = (pattern, split, metric)
        if key not in self.matched:
            found: dict[str, int] = {}
            for i, column in enumerate(self.columns):
                name = column.treebank if "@" in pattern else column.treebank.partition("@")[0]
                if (column.split, column.metric) != (split, metric):
                    continue
                if fnmatchcase(name, pattern):
                    before = found.get(column.treebank)
                    if before is None or self._filled(i) > self._filled(before):
                        found[column.treebank] = i
            self.matched[key] = tuple(found.values())
        return self.matched[key]

    def row(self, groups: tuple[tuple[int, ...], ...]) -> "RowOfOurs":
        """Every ablation on some targets, a group of test sets each."""
        if groups not in self.rows:
            by_target = np.stack([self._pooled(group) for group in groups], axis=1)
            everything, reference = tuple(range(len(groups))), self.lineup.reference
            scores = gaps.over_seeds(gaps.over_targets(by_target, everything))
            mean = gaps.over_targets(gaps.over_seeds(by_target).mean, everything)
            delta, delta_mean = None, np.full(len(mean), np.nan)
            if reference is not None:
                paired = gaps.deltas(by_target, reference)
                delta = gaps.over_seeds(gaps.over_targets(paired.by_seed, everything))
                delta_mean = gaps.over_targets(paired.mean, everything)
            self.rows[groups] = RowOfOurs(scores, mean, delta, delta_mean)
        return self.rows[groups]

    def _pooled(self, columns: tuple[int, ...]) -> Float[np.ndarray, "a s"]:
        """One score a trial over test sets taken as one: weighted by their items."""
        if len(columns) == 1:
            return self.values[:, columns[0]]
        weights, values = self.n[list(columns)], self.values[:, list(columns)]
        pooled: Float[np.ndarray, "a s"] = np.einsum("acs,c->as", values, weights) / weights.sum()
        return pooled

    def _filled(self, column: int) -> int:
        return int((~np.isnan(self.values[:, column])).sum())


@dataclass(frozen=True, slots=True)
class RowOfOurs:
    """One row of a printed table for every ablation: a target, or a mean over targets.

    Attributes:
        scores: Over seeds that have all targets.
        mean: Mean over targets of seed means, as it is printed.
        delta: Differences to the reference over seeds that have all targets; None without one.
        delta_mean: Mean over targets of their mean differences.
    """

    scores: gaps.Paired
    mean: Float[np.ndarray, " a"]
    delta: gaps.Paired | None
    delta_mean: Float[np.ndarray, " a"]


@dataclass(frozen=True, slots=True)
class Study:
    """What our side of the tables is made of.

    Attributes:
        known: Who took part.
        results: Scores, one a lineup.
        profiles: Similarities.
        alignments: Similarity against transfer, the measure of the report.
        minutes: Trial id -> minutes of training and evaluation.
    """

    known: Roster
    results: tuple[Results, ...]
    profiles: tuple[Profile, ...] = ()
    alignments: tuple[Alignment, ...] = ()
    minutes: Mapping[str, float] = field(default_factory=dict)

    def variants(self) -> tuple[tuple[str, str], ...]:
        """(encoder, detail) of its settings: each has tables of its own."""
        return tuple(dict.fromkeys((r.setting.encoder, r.setting.detail) for r in self.results))

    def has(self, start: str) -> bool:
        """Whether some ablation begins so."""
        return any(name.startswith(start) for r in self.results for name in r.lineup.ablations)


def results(
    found: Scored, known: Roster, shown: Sequence[Lineup], scores: pa.Table
) -> tuple[Results, ...]:
    """Lay all scores of the shown trials out, one array a lineup.

    Args:
        found: Scores of trials that are done.
        known: Who took part.
        shown: Which trials.
        scores: Rows of `schema.SCORES`, for the sizes of test sets.
    """
    place = {
        trial: (i, row, seed)
        for i, lineup in enumerate(shown)
        for (row, seed), trial in np.ndenumerate(lineup.trials)
        if trial >= 0
    }
    at = np.full((len(known.trials) + 1, 3), -1, np.int64)
    for trial, where in place.items():
        at[trial] = where
    sizes = _sizes(found, scores)
    whose = at[found.trial]
    order = np.argsort(whose[:, 0], kind="stable")
    bounds = np.searchsorted(whose[order, 0], np.arange(len(shown) + 1))
    built = []
    for i, lineup in enumerate(shown):
        rows = order[bounds[i] : bounds[i + 1]]
        used, column = np.unique(found.column[rows], return_inverse=True)
        values = np.full((len(lineup.ablations), len(used), len(lineup.seeds)), np.nan)
        values[whose[rows, 1], column, whose[rows, 2]] = found.value[rows]
        columns = tuple(found.columns[c] for c in used)
        setting = known.settings[lineup.setting]
        built.append(Results(lineup, setting, columns, values, sizes[used]))
    return tuple(built)


def _sizes(found: Scored, scores: pa.Table) -> Float[np.ndarray, " c"]:
    """Items of each column; 1 where nothing says."""
    keys = ["split", "treebank", "metric"]
    grouped = scores.group_by(keys).aggregate([("n", "max")])
    names = zip(*(grouped[key].to_pylist() for key in keys), strict=True)
    largest = dict(zip(names, grouped["n_max"].to_pylist(), strict=True))
    n = [largest.get((c.split, c.treebank, c.metric), 1) for c in found.columns]
    return np.array(n, np.float64)


def minutes(trials: pa.Table) -> dict[str, float]:
    """Trial id -> minutes of training and evaluation, of its longest attempt."""
    spent = pc.add(pc.fill_null(trials["train_s"], 0.0), pc.fill_null(trials["evaluate_s"], 0.0))
    table = pa.table({"trial_id": trials["trial_id"], "s": spent})
    grouped = table.group_by("trial_id").aggregate([("s", "max")])
    pairs = zip(grouped["trial_id"].to_pylist(), grouped["s_max"].to_pylist(), strict=True)
    return {trial_id: seconds / 60 for trial_id, seconds in pairs}


def find(study: Study, query: Query, variant: tuple[str, str]) -> Found | None:
    """Our number for a cell.

    Args:
        study: Our side.
        query: What stands in the cell.
        variant: (encoder, detail) of the trials to look at.

    Returns:
        None where the study has no such setting, or none of its test sets are of the table's
        family; a number without value and with a reason where it has, but not this one.
    """
    for one in study.results:
        setting = one.setting
        if (setting.encoder, setting.detail) != variant or setting.task != query.task:
            continue
        if setting.source != query.source or not _encoder_fits(setting, query):
            continue
        if query.train and setting.train.partition("@")[0] != query.train:
            continue
        found = _KINDS[query.kind](study, one, query)
        if found is not None:
            return found
    return None


def _encoder_fits(setting: Setting, query: Query) -> bool:
    return not query.encoder or query.encoder in setting.encoder


def _score(study: Study, one: Results, query: Query) -> Found | None:
    metric = next((m for m in query.metrics if any(c.metric == m for c in one.columns)), None)
    if metric is None:
        return None
    groups = _groups(one, query, metric)
    if groups is None:
        return None
    if query.ablation not in one.lineup.ablations:
        return Found(Number(math.nan, query.is_delta, reason="not part of this study"))
    lacking = [t for t, group in zip(query.targets, groups, strict=False) if not group]
    if lacking:
        names = ", ".join(map(labels.language, lacking))
        return Found(Number(math.nan, query.is_delta, reason=f"not tested on {names}"))
    reason = f"mean over {len(groups)} languages, the paper's over {query.of}"
    reason = reason if query.of not in {0, len(groups)} else ""
    row = one.row(tuple(groups))
    a, difference = one.lineup.ablations.index(query.ablation), math.nan
    value, shown = float(row.mean[a]), row.scores
    if row.delta is not None and a != one.lineup.reference:
        difference = float(row.delta_mean[a])
        shown = row.delta if query.is_delta else shown
    if query.is_delta:
        value = difference
    number = _number(study, one, query, a, value, shown)
    return Found(replace(number, reason=number.reason or reason), difference)


def _groups(one: Results, query: Query, metric: str) -> list[tuple[int, ...]] | None:
    """Columns of each target; None where the study has none of this table's test sets."""
    if query.among:
        columns = (one.matching(pattern, query.split, metric) for pattern in query.among)
        every = next((found for found in columns if found), ())
        kept: list[tuple[int, ...]] = [
            (i,) for i in every if one.columns[i].target not in query.less
        ]
        return kept or None
    groups = [
        next(filter(None, (one.matching(p, query.split, metric) for p in patterns)), ())
        for patterns in query.tests
    ]
    if any(groups) or _has_family(one, query, metric):
        return groups
    return None


def _has_family(one: Results, query: Query, metric: str) -> bool:
    """Whether the setting was tested on this family in other languages."""
    for target, patterns in zip(query.targets, query.tests, strict=True):
        for pattern in patterns:
            whole = _opened(pattern, target)
            if whole is not None and one.matching(whole, query.split, metric):
                return True
    return False


def _opened(pattern: str, target: str) -> str | None:
    """`fr_pud` of fr -> `*_pud`, `wikiann-fr` -> `wikiann-*`; None for what names no family."""
    if pattern.startswith(f"{target}_") and pattern.endswith("_pud"):
        return "*" + pattern.removeprefix(target)
    return pattern.removesuffix(target) + "*" if pattern.endswith(f"-{target}") else None


def _number(  # noqa: PLR0917 - one number, from all that it is made of
    study: Study, one: Results, query: Query, ablation: int, value: float, shown: gaps.Paired
) -> Number:
    lineup, known = one.lineup, study.known
    n, sd = int(shown.n[ablation]), float(shown.sd[ablation])
    interval = t_intervals(np.array([value]), np.array([sd]), np.array([n]))[0]
    behind = ~np.isnan(shown.by_seed[ablation])
    against = behind if query.is_delta else np.zeros(len(lineup.seeds), bool)
    ids = (
        tuple(known.trials[i].trial_id for i in lineup.trials[row][seeds] if i >= 0)
        for row, seeds in ((ablation, behind), (lineup.reference or 0, against))
    )
    reason = _why(one, known, ablation, query) if math.isnan(value) else ""
    ends = (float(interval[0]), float(interval[1]))
    own, base = ids
    return Number(value, query.is_delta, sd, n, ends, own, base, reason)


def _why(one: Results, known: Roster, ablation: int, query: Query) -> str:
    """Why there is no number though the test set is there."""
    trials = [known.trials[i] for i in one.lineup.trials[ablation] if i >= 0]
    if not any(trial.status == "done" for trial in trials):
        return "; ".join(f"seed {trial.seed}: {trial.reason}" for trial in trials) or "not run"
    if query.is_delta and one.lineup.reference != ablation:
        return "no score, or no reference of the same seed"
    return "no score"


def _rho(study: Study, one: Results, query: Query) -> Found | None:
    for alignment in study.alignments:
        if alignment.block.lineup is one.lineup and query.ablation in alignment.whole:
            found = alignment.whole[query.ablation]
            number = Number(found.rho_score, n=found.n, interval=found.interval)
            return Found(number)
    return None


def _hyper(study: Study, one: Results, query: Query) -> Found | None:
    reference, metric = one.lineup.reference, query.metrics[0]
    if reference is None:
        return None
    trials = [study.known.trials[i] for i in one.lineup.trials[reference] if i >= 0]
    ids = tuple(trial.trial_id for trial in trials if trial.status == "done")
    if metric in _HYPER:
        value = json.loads(one.lineup.hypers[reference] or "{}").get(_HYPER[metric], math.nan)
    elif metric == "grid_trials":
        own = (t for t in study.known.trials if t.setting == one.lineup.setting)
        value = sum(t.ablation == labels.REFERENCE and t.status == "done" for t in own)
    else:
        spent = [study.minutes[i] for i in ids if i in study.minutes]
        value = sum(spent) / len(spent) if spent else math.nan
    reason = "not known" if math.isnan(value) else ""
    return Found(Number(float(value), n=len(ids), trials=ids, reason=reason))


def _cosine(study: Study, one: Results, query: Query) -> Found | None:
    for profile in study.profiles:
        if profile.lineup is one.lineup and profile.measure == "cosine":
            if query.ablation not in one.lineup.ablations:
                return None
            last = profile.values[one.lineup.ablations.index(query.ablation), :, -1]
            shown = gaps.over_seeds(last.mean(axis=0, keepdims=True))
            number = Number(float(shown.mean[0]), sd=float(shown.sd[0]), n=int(shown.n[0]))
            return Found(number)
    return None


_KINDS = {"score": _score, "rho": _rho, "hyper": _hyper, "cosine": _cosine}
