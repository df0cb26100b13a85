"""Our number for a cell of a printed table: a score, a correlation, a setting of training; pure."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis import gaps, labels
from analysis.evidence import Alignment
from analysis.intervals import t_interval
from analysis.measured import Results
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
        reason = f"not tested on {names}" if query.is_mean else "not tested"
        return Found(Number(math.nan, query.is_delta, reason=reason))
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
    behind = ~np.isnan(shown.by_seed[ablation])
    against = behind if query.is_delta else np.zeros(len(lineup.seeds), bool)
    ids = (
        tuple(known.trials[i].trial_id for i in lineup.trials[row][seeds] if i >= 0)
        for row, seeds in ((ablation, behind), (lineup.reference or 0, against))
    )
    reason = _why(one, known, ablation, query) if math.isnan(value) else ""
    ends = t_interval(value, sd, n)
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
