"""Rows -> cells: the numbers of a table, with n, mean, sd over seeds and the trials behind them.

A cell holds what differs by seed only. Failed, pruned and missing trials enter no mean; they are
in `Roster.absent`, with their reasons.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from analysis.columns import coded, numbers, positions, starts_of_runs
from analysis.roster import Roster

CELLS = pa.schema(
    [
        pa.field("encoder", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),  # sets apart settings that look alike
        pa.field("ablation", pa.string(), nullable=False),
        pa.field("hyper", pa.string(), nullable=False),  # JSON
        pa.field("split", pa.string(), nullable=False),  # dev | test
        pa.field("family", pa.string(), nullable=False),  # test sets that may be compared
        pa.field("treebank", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),  # language
        pa.field("metric", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),  # seeds
        pa.field("mean", pa.float64(), nullable=False),  # fraction
        pa.field("sd", pa.float64()),  # ddof 1; null for one seed
        pa.field("seeds", pa.list_(pa.int64()), nullable=False),
        pa.field("values", pa.list_(pa.float64()), nullable=False),
        pa.field("trial_ids", pa.list_(pa.string()), nullable=False),
    ]
)

ANY = "*"

NAMES_OF_A_COLUMN = ("split", "treebank", "language", "data_key", "metric")
"""Columns of the tables that say what was scored."""


@dataclass(frozen=True, slots=True)
class Column:
    """What was scored: one test set by one metric.

    Attributes:
        split: `dev` or `test`.
        family: Test sets of one family are compared across languages (`pud`, `wikiann`).
        treebank: Code of the test set.
        target: Its language.
        metric: Name of the metric.
    """

    split: str
    family: str
    treebank: str
    target: str
    metric: str


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of trials that are done, as numbers; ordered by trial, then column.

    Attributes:
        trial: Index into `Roster.trials`.
        column: Index into `columns`.
        value: Fraction.
        columns: What the columns are.
        keys: How the rows name each of them: the values of `NAMES_OF_A_COLUMN`.
    """

    trial: Int[np.ndarray, " rows"]
    column: Int[np.ndarray, " rows"]
    value: Float[np.ndarray, " rows"]
    columns: tuple[Column, ...]
    keys: tuple[tuple[str, ...], ...] = ()


def family_of(treebank: str, language: str, families: Mapping[str, str] | None = None) -> str:
    """The family that a test set belongs to: its code less the language.

    Args:
        treebank: `en_pud` is of family `pud`, `wikiann-en` of `wikiann`, `uner-en_pud` of
            `uner-pud`.
        language: `en`.
        families: Treebank -> family, where the code does not tell; `*` stands for all others
            (decision D-09: `{"*": "ud"}` compares fr_gsd with en_ewt).
    """
    families = families or {}
    named = families.get(treebank, families.get(ANY))
    if named is not None:
        return named
    dataset, _, rest = treebank.rpartition("-")
    rest = rest.removeprefix(f"{language}_") if rest != language else ""
    return "-".join(filter(None, (dataset, rest))) or treebank


def scored(scores: pa.Table, known: Roster, families: Mapping[str, str] | None = None) -> Scored:
    """Pick the scores of trials that are done, each measurement once.

    Args:
        scores: Rows of `schema.SCORES`.
        known: Who took part.
        families: As `family_of` takes them.
    """
    trial = positions(scores["trial_id"], [t.trial_id or "-" for t in known.trials])
    done = np.array([t.status == "done" for t in known.trials] + [False], bool)
    rows = np.flatnonzero(done[trial])
    trial, value = trial[rows], numbers(scores["value"])[rows]
    kept = scores.select(list(NAMES_OF_A_COLUMN))
    kept = kept if len(rows) == len(kept) else kept.take(pa.array(rows))
    key, columns, keys = _columns(kept, families)
    order = np.lexsort((key, trial))
    trial, key, value = trial[order], key[order], value[order]
    first = starts_of_runs(trial, key)
    return Scored(trial[first], key[first], value[first], columns, keys)


def _columns(
    scores: pa.Table, families: Mapping[str, str] | None
) -> tuple[Int[np.ndarray, " rows"], tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    parts = [coded(scores[name]) for name in NAMES_OF_A_COLUMN]
    if not len(scores):
        return np.zeros(0, np.int64), (), ()
    shape = tuple(max(1, len(part.names)) for part in parts)
    flat = np.ravel_multi_index(tuple(part.codes for part in parts), shape)
    found, key = np.unique(flat, return_inverse=True)
    texts = [
        tuple(part.names[i] for part, i in zip(parts, at, strict=True))
        for at in zip(*np.unravel_index(found, shape), strict=True)
    ]
    versions = _versions({(split, treebank, data) for split, treebank, _, data, _ in texts})
    columns = tuple(
        Column(
            split,
            family_of(treebank, language, families) + versions[split, treebank, data],
            treebank,
            language,
            metric,
        )
        for split, treebank, language, data, metric in texts
    )
    return key.astype(np.int64), columns, tuple(texts)


def _versions(read: Collection[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Mark what was cut, `[:500]`, and a file whose content changed, `#ab12cd34`."""
    contents: dict[tuple[str, str], set[str]] = {}
    for split, treebank, data in read:
        contents.setdefault((split, treebank), set()).add(data.partition("[")[0])
    marks = {}
    for split, treebank, data in read:
        content, bracket, limit = data.partition("[")
        several = len(contents[split, treebank]) > 1
        mark = f"#{re.sub('^sha256:', '', content)[:8]}" if several else ""
        marks[split, treebank, data] = mark + bracket + limit
    return marks


def cells(found: Scored, known: Roster, *, seeds: Collection[int] | None = None) -> pa.Table:
    """Average over seeds.

    Args:
        found: Scores of trials that are done.
        known: Who took part.
        seeds: Only these seeds; None for all.

    Returns:
        A table with the columns of `CELLS`, in the order of the roster.
    """
    groups, group_of = _groups(known)
    seed_of = np.array([trial.seed for trial in known.trials] + [0], np.int64)
    kept = np.flatnonzero(_is_among(seed_of[found.trial], seeds))
    group, column = group_of[found.trial[kept]], found.column[kept]
    order = kept[np.lexsort((found.trial[kept], column, group))]
    group, column = group_of[found.trial[order]], found.column[order]
    starts = np.flatnonzero(starts_of_runs(group, column))
    value, seed = found.value[order], seed_of[found.trial[order]]
    n, mean, sd = moments(value, starts)
    offsets = pa.array(np.append(starts, len(order)), pa.int32())
    ids = pa.array([trial.trial_id for trial in known.trials], pa.string())
    lists = {
        "seeds": pa.array(seed),
        "values": pa.array(value),
        "trial_ids": ids.take(pa.array(found.trial[order])),
    }
    settings = [known.settings[setting] for setting, _, _ in groups]
    by_group = {
        "encoder": [setting.encoder for setting in settings],
        "task": [setting.task for setting in settings],
        "source": [setting.source for setting in settings],
        "detail": [setting.detail for setting in settings],
        "ablation": [ablation for _, ablation, _ in groups],
        "hyper": [hyper for _, _, hyper in groups],
    }
    names = ("split", "family", "treebank", "target", "metric")
    by_column = {name: [getattr(c, name) for c in found.columns] for name in names}
    data: dict[str, pa.Array] = {
        **{k: pa.array(v, pa.string()).take(pa.array(group[starts])) for k, v in by_group.items()},
        **{
            k: pa.array(v, pa.string()).take(pa.array(column[starts])) for k, v in by_column.items()
        },
        "n": pa.array(n, pa.int64()),
        "mean": pa.array(mean, pa.float64()),
        "sd": pc.if_else(pa.array(n > 1, pa.bool_()), pa.array(sd, pa.float64()), None),
        **{name: pa.ListArray.from_arrays(offsets, values) for name, values in lists.items()},
    }
    return pa.table({field.name: data[field.name] for field in CELLS}, schema=CELLS)


def moments(
    values: Float[np.ndarray, " rows"], starts: Int[np.ndarray, " cells"]
) -> tuple[Int[np.ndarray, " cells"], Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """Count, mean and sample sd (ddof 1; 0 for one value) of runs of values.

    Args:
        values: Run after run.
        starts: Where each run begins.
    """
    n = np.diff(np.append(starts, len(values)))
    if not len(starts):
        return n, np.zeros(0), np.zeros(0)
    mean = np.add.reduceat(values, starts) / n
    squares = np.add.reduceat((values - np.repeat(mean, n)) ** 2, starts)
    return n, mean, np.sqrt(squares / np.maximum(n - 1, 1))


def _is_among(
    seeds: Int[np.ndarray, " rows"], wanted: Collection[int] | None
) -> Bool[np.ndarray, " rows"]:
    return np.ones(len(seeds), bool) if wanted is None else np.isin(seeds, sorted(wanted))


def _groups(known: Roster) -> tuple[list[tuple[int, str, str]], Int[np.ndarray, " trials"]]:
    """The (setting, ablation, hyper) of the roster, in its order, and each trial's index there."""
    place: dict[tuple[int, str, str], int] = {}
    of_trial = [
        place.setdefault((t.setting, t.ablation, t.hyper), len(place)) for t in known.trials
    ]
    return list(place), np.array([*of_trial, -1], np.int64)
