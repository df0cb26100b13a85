"""All scores of a lineup as one array, dev and test, every metric; means over seeds and test sets.

Differences are paired by seed. Treebanks that one printed target stands for are pooled by their
words; a mean over targets is there only if all of them are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from analysis import gaps
from analysis.blocks import Lineup
from analysis.cells import Column, Scored
from analysis.roster import Roster, Setting


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
