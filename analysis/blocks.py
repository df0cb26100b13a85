"""Scores of one setting as an array: ablation x target x seed, NaN where there is no number.

Gaps, deltas and means are array arithmetic from here on.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from analysis.cells import Column, Scored, family_of
from analysis.columns import coded, positions, starts_of_runs
from analysis.labels import REFERENCE
from analysis.roster import Roster, Setting, Trial

METRIC_ORDER = ("accuracy", "las", "f1_lenient", "f1")
"""Which metric stands for a task whose training curve names none."""


@dataclass(frozen=True, slots=True)
class Lineup:
    """The trials of one setting that a table shows: one set of hyper-parameters an ablation.

    Attributes:
        setting: Index into `Roster.settings`.
        ablations: The reference first.
        hypers: The hyper-parameters shown for each ablation, as JSON.
        seeds: All seeds that some ablation was run with.
        trials: Index into `Roster.trials`; -1 where there is no such trial.
        note: How the hyper-parameters were chosen; empty when there was one set only.
    """

    setting: int
    ablations: tuple[str, ...]
    hypers: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: Int[np.ndarray, "a s"]
    note: str = ""

    @property
    def reference(self) -> int | None:
        """Position of the reference; None when it was not run."""
        return self.ablations.index(REFERENCE) if REFERENCE in self.ablations else None


@dataclass(frozen=True, slots=True)
class Block:
    """Test scores of one setting on one family of test sets by one metric.

    Attributes:
        lineup: Whose scores.
        family: Which test sets.
        metric: Which metric.
        treebanks: Test sets, those of the source language first.
        targets: Their languages.
        source: Position of the test set in the source language; None when there is none.
        values: Fractions; NaN where there is none.
    """

    lineup: Lineup
    family: str
    metric: str
    treebanks: tuple[str, ...]
    targets: tuple[str, ...]
    source: int | None
    values: Float[np.ndarray, "a t s"]

    @property
    def others(self) -> tuple[int, ...]:
        """Positions of test sets in other languages than the source: X of SRC-X."""
        own = None if self.source is None else self.targets[self.source]
        return tuple(i for i, target in enumerate(self.targets) if target != own)


def main_metrics(curves: pa.Table, known: Roster, found: Scored) -> dict[str, str]:
    """The metric that stands for each task: the one its trials selected on, if it was tested."""
    task_of = [known.settings[trial.setting].task for trial in known.trials]
    tasks = tuple(dict.fromkeys(task_of))
    place = np.array([tasks.index(task) for task in task_of] + [0], np.int64)
    tested: dict[str, set[str]] = defaultdict(set)
    pairs = np.unique(place[found.trial] * len(found.columns) + found.column)
    for task, column in zip(*np.divmod(pairs, max(1, len(found.columns))), strict=True):
        if found.columns[column].split == "test":
            tested[tasks[task]].add(found.columns[column].metric)
    selected: dict[str, Counter[str]] = defaultdict(Counter)
    names = coded(curves["dev_metric"])
    trials = positions(curves["trial_id"], [trial.trial_id or "-" for trial in known.trials])
    both = (place[trials] * len(names.names) + names.codes)[trials >= 0]
    for pair, count in zip(*np.unique(both, return_counts=True), strict=True):
        task, name = divmod(int(pair), len(names.names))
        selected[tasks[task]][names.names[name]] += int(count)
    return {
        task: next(
            (name for name, _ in selected[task].most_common() if name in metrics),
            next((name for name in METRIC_ORDER if name in metrics), min(metrics)),
        )
        for task, metrics in sorted(tested.items())
    }


def lineups(
    known: Roster,
    found: Scored,
    metrics: Mapping[str, str],
    *,
    seeds: Collection[int] | None = None,
) -> tuple[Lineup, ...]:
    """Choose which trials are shown: for each setting and ablation one set of hyper-parameters.

    Of several sets, those with most seeds done compete, and the best mean on source dev wins;
    test scores choose nothing.

    Args:
        known: Who took part.
        found: Their scores, dev included.
        metrics: Task -> metric to choose by.
        seeds: Only these seeds; None for all.
    """
    dev = _dev_scores(known, found, metrics)
    members: dict[int, list[int]] = defaultdict(list)
    for index, trial in enumerate(known.trials):
        if seeds is None or trial.seed in seeds:
            members[trial.setting].append(index)
    return tuple(
        _lineup(known, setting, members[setting], dev)
        for setting in sorted(members)
        if setting >= 0
    )


def _lineup(
    known: Roster, setting: int, members: Sequence[int], dev: Mapping[int, float]
) -> Lineup:
    by_ablation: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index in members:
        trial = known.trials[index]
        by_ablation[trial.ablation][trial.hyper].append(index)
    chosen = {name: _best(known.trials, sets, dev) for name, sets in by_ablation.items()}
    all_seeds = sorted({known.trials[i].seed for hyper in chosen.values() for i in hyper})
    place = {seed: i for i, seed in enumerate(all_seeds)}
    ablations = [name for name in known.ablations(setting) if name in chosen]
    trials = np.full((len(ablations), len(all_seeds)), -1, np.int64)
    for row, name in enumerate(ablations):
        for index in reversed(chosen[name]):
            trials[row, place[known.trials[index].seed]] = index
    searched = sum(len(sets) > 1 for sets in by_ablation.values())
    return Lineup(
        setting,
        tuple(ablations),
        tuple(known.trials[chosen[name][0]].hyper for name in ablations),
        tuple(all_seeds),
        trials,
        f"hyper-parameters of {searched} ablations chosen on source dev" if searched else "",
    )


def _best(
    trials: Sequence[Trial], sets: Mapping[str, list[int]], dev: Mapping[int, float]
) -> list[int]:
    def merit(hyper: str) -> tuple[int, float]:
        values = [dev[index] for index in sets[hyper] if index in dev]
        n_done = sum(trials[index].status == "done" for index in sets[hyper])
        return n_done, float(np.mean(values)) if values else -np.inf

    return sets[max(sorted(sets), key=merit)]


def _dev_scores(known: Roster, found: Scored, metrics: Mapping[str, str]) -> dict[int, float]:
    """Trial -> its score on source dev."""
    dev = np.array([column.split == "dev" for column in found.columns] + [False], bool)
    scores: dict[int, float] = {}
    for row in np.flatnonzero(dev[found.column]):
        trial, column = int(found.trial[row]), found.columns[found.column[row]]
        setting = known.settings[known.trials[trial].setting]
        if column.target == setting.source and column.metric == metrics.get(setting.task):
            scores[trial] = float(found.value[row])
    return scores


def blocks(
    known: Roster,
    found: Scored,
    shown: Sequence[Lineup],
    *,
    declared: Sequence[str] = (),
    metrics: Collection[str] | None = None,
) -> tuple[Block, ...]:
    """Lay test scores out as arrays.

    Args:
        known: Who took part.
        found: Their scores.
        shown: Which trials.
        declared: Test sets (`fr_pud`) or languages in the order of tables; others follow by name,
            the source comes first. A declared test set that nobody scored is a column of NaN.
        metrics: Only these metrics; None for all.
    """
    test = np.array([column.split == "test" for column in found.columns] + [False], bool)
    row_of, seed_of, lineup_of = (np.full(len(known.trials) + 1, -1, np.int64) for _ in range(3))
    for i, lineup in enumerate(shown):
        for (row, seed), trial in np.ndenumerate(lineup.trials):
            if trial >= 0:
                row_of[trial], seed_of[trial], lineup_of[trial] = row, seed, i
    kept = np.flatnonzero(test[found.column] & (lineup_of[found.trial] >= 0))
    kinds = sorted({(column.family, column.metric) for column in found.columns})
    kind_of = np.array([kinds.index((c.family, c.metric)) for c in found.columns], np.int64)
    trial, column, value = found.trial[kept], found.column[kept], found.value[kept]
    if not len(kept):
        return ()
    by = np.lexsort((kind_of[column], lineup_of[trial]))
    starts = np.flatnonzero(starts_of_runs(lineup_of[trial][by], kind_of[column][by]))
    built = []
    for rows in np.split(by, starts[1:]):
        lineup = shown[lineup_of[trial[rows[0]]]]
        family, metric = kinds[kind_of[column[rows[0]]]]
        if metrics is not None and metric not in metrics:
            continue
        used = np.unique(column[rows])
        setting = known.settings[lineup.setting]
        tests = _tests([found.columns[i] for i in used], family, setting, declared)
        position = {treebank: i for i, (treebank, _) in enumerate(tests)}
        place = np.zeros(len(found.columns), np.int64)
        place[used] = [position[found.columns[i].treebank] for i in used]
        values = np.full((len(lineup.ablations), len(tests), len(lineup.seeds)), np.nan)
        values[row_of[trial[rows]], place[column[rows]], seed_of[trial[rows]]] = value[rows]
        targets = tuple(target for _, target in tests)
        source = 0 if targets and targets[0] == setting.source else None
        treebanks = tuple(treebank for treebank, _ in tests)
        built.append(Block(lineup, family, metric, treebanks, targets, source, values))
    return tuple(built)


def _tests(
    used: Sequence[Column], family: str, setting: Setting, declared: Sequence[str]
) -> list[tuple[str, str]]:
    """(test set, language) of a block, in the order of tables: scored ones and declared ones."""
    tests = {(column.treebank, column.target) for column in used}
    plain = family.partition("[")[0].partition("#")[0]
    for code in declared:
        language = language_of(code)
        if code != language and family_of(code, language) == plain:
            tests.add((code, language))
    ranks: dict[str, int] = {}
    for i, code in enumerate(declared):
        ranks.setdefault(code, i)
        ranks.setdefault(language_of(code), i)
    last = len(declared)

    def order(test: tuple[str, str]) -> tuple[bool, bool, int, str, str]:
        treebank, target = test
        rank = ranks.get(treebank, ranks.get(target, last))
        return target != setting.source, treebank != setting.train, rank, target, treebank

    return sorted(tests, key=order)


def language_of(code: str) -> str:
    """Language of a test set by its code: `fr_pud`, `wikiann-fr`, or plain `fr`."""
    return code.partition("_")[0] if "_" in code else code.rpartition("-")[2]


def hyper_text(hyper: str) -> str:
    """Hyper-parameters as people say them: `learning_rate 0.0004, batch_size 16, epochs 2`."""
    content = json.loads(hyper or "{}")
    first = ("learning_rate", "batch_size", "epochs")
    return ", ".join(f"{name} {content[name]}" for name in first if name in content)
