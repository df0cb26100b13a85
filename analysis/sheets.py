"""Tables as values: rows of numbers that know their trials; nothing is rounded or drawn here.

`main_sheet` has the shape of Table 1 of Muller et al. (2021), `target_sheet` that of Tables 6-8.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from analysis import labels
from analysis.blocks import Lineup
from analysis.evidence import Evidence
from analysis.gaps import Paired
from analysis.intervals import NONE, Interval, t_intervals
from analysis.roster import Roster, Setting


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a table, and where it comes from.

    Attributes:
        value: A fraction, or a difference of fractions; NaN where there is none.
        is_delta: Whether it is a difference to the reference.
        sd: Over seeds (paired ones for a difference); NaN below two.
        n: Seeds, or pairs of seeds.
        interval: 95 % over seeds; NaN below two.
        trials: Ids of the trials behind it.
        against: Ids of the reference trials behind a difference.
        reason: Why there is no value, or what to know about it.
        both: 95 % over seeds and sentences, over sentences alone with one seed; NaN without counts
            of sentences.
    """

    value: float
    is_delta: bool = False
    sd: float = math.nan
    n: int = 0
    interval: Interval = NONE
    trials: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    reason: str = ""
    both: Interval = NONE


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table.

    Attributes:
        heads: What stands left of the numbers.
        address: (encoder, task, detail, family, metric, source, target) of the numbers, for CSV.
        numbers: One a column.
        is_mean: Whether it is a mean over targets.
    """

    heads: tuple[str, ...]
    address: tuple[str, ...]
    numbers: tuple[Number, ...]
    is_mean: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table.

    Attributes:
        name: Stem of its files.
        title: One line.
        heads: Titles of the left columns.
        ablations: One a column of numbers.
        lines: Its rows.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    ablations: tuple[str, ...]
    lines: tuple[Line, ...]


def setting_title(setting: Setting, *, several_encoders: bool) -> str:
    """What a setting is, in one line: `POS tagging from English`."""
    parts = [f"{labels.task(setting.task)} from {labels.language(setting.source)}"]
    parts += [setting.encoder] * several_encoders + [setting.detail] * bool(setting.detail)
    return ", ".join(parts)


def main_sheet(found: Sequence[Evidence], known: Roster) -> Sheet:
    """SRC-SRC and SRC-X of every setting: the reference, then differences to it."""
    names = {name for evidence in found for name in evidence.block.lineup.ablations}
    ablations = tuple(sorted(names, key=labels.ablation_order))
    lines = []
    for evidence in found:
        task = _task_text(evidence, known)
        rows = [_source_line(evidence, known, ablations), _mean_line(evidence, known, ablations)]
        lines += [replace(line, heads=(task, *line.heads)) for line in rows]
    title = "The source language, and the mean of the other languages"
    return Sheet("main", title, ("Task", "Source → target"), ablations, tuple(lines))


def target_sheet(evidence: Evidence, known: Roster, name: str) -> Sheet:
    """The mean over other languages, then each target; `name` is the stem of its files."""
    block = evidence.block
    setting = known.settings[block.lineup.setting]
    ablations = block.lineup.ablations
    lines = [_mean_line(evidence, known, ablations)]
    lines += [_target_line(evidence, known, ablations, t) for t in range(len(block.targets))]
    several = len({setting.encoder for setting in known.settings}) > 1
    title = f"{setting_title(setting, several_encoders=several)}: {labels.metric(block.metric)}"
    return Sheet(name, f"{title} on {block.family}", ("Target",), ablations, tuple(lines))


def _source_line(evidence: Evidence, known: Roster, ablations: Sequence[str]) -> Line:
    block = evidence.block
    if block.source is not None:
        return _target_line(evidence, known, ablations, block.source)
    source = known.settings[block.lineup.setting].source
    reason = f"no test set of family {block.family} in {labels.language(source)}"
    numbers = tuple(Number(math.nan, reason=reason) for _ in ablations)
    return Line((_arrow(source, source),), _address(evidence, known, "", source), numbers)


def _target_line(evidence: Evidence, known: Roster, ablations: Sequence[str], target: int) -> Line:
    block = evidence.block
    source = known.settings[block.lineup.setting].source
    language, treebank = block.targets[target], block.treebanks[target]
    head = _arrow(source, source) if language == source else labels.language(language)
    head += f" ({treebank})" if block.targets.count(language) > 1 else ""
    scores, delta, spread = evidence.scores, evidence.delta, evidence.spread
    both = None if spread is None else (spread.scores[:, target], spread.delta[:, target])
    numbers = _numbers(
        evidence,
        known,
        ablations,
        (target,),
        scores[:, target],
        None if delta is None else delta[:, target],
        both,
    )
    return Line((head,), _address(evidence, known, treebank, language), numbers)


def _mean_line(evidence: Evidence, known: Roster, ablations: Sequence[str]) -> Line:
    block = evidence.block
    source = known.settings[block.lineup.setting].source
    head = f"{labels.language(source)} → mean of {len(block.others)} others"
    spread = evidence.spread
    both = None if spread is None else (spread.scores_x, spread.delta_x)
    parts = (evidence, known, ablations, block.others, evidence.scores_x, evidence.delta_x, both)
    return Line((head,), _address(evidence, known, "", "X"), _numbers(*parts), is_mean=True)


def _arrow(source: str, target: str) -> str:
    return f"{labels.language(source)} → {labels.language(target)}"


def _task_text(evidence: Evidence, known: Roster) -> str:
    setting = known.settings[evidence.block.lineup.setting]
    several = len({s.encoder for s in known.settings}) > 1
    parts = [labels.task(setting.task), labels.metric(evidence.block.metric)]
    parts += [setting.encoder] * several + [setting.detail] * bool(setting.detail)
    return ", ".join([*parts, evidence.block.family])


def _address(evidence: Evidence, known: Roster, test: str, target: str) -> tuple[str, ...]:
    block = evidence.block
    setting = known.settings[block.lineup.setting]
    whose = (setting.encoder, setting.task, setting.detail, block.family, block.metric)
    return (*whose, setting.source, target, test)


def _numbers(  # noqa: PLR0917 - one line of a table, from all that it is made of
    evidence: Evidence,
    known: Roster,
    ablations: Sequence[str],
    targets: tuple[int, ...],
    scores: Paired,
    delta: Paired | None,
    both: tuple[Float[np.ndarray, "a 2"], Float[np.ndarray, "a 2"]] | None,
) -> tuple[Number, ...]:
    """One number an ablation.

    Args:
        evidence: Where they come from.
        known: Who took part.
        ablations: Columns.
        targets: Which targets the line is about.
        scores: One value an ablation of the lineup.
        delta: The same, as difference to the reference.
        both: Intervals of the two over seeds and sentences.
    """
    block, lineup = evidence.block, evidence.block.lineup
    intervals = [
        t_intervals(part.mean, part.sd, part.n) for part in (scores, delta) if part is not None
    ]
    has_score = ~np.isnan(block.values[:, list(targets)]).all(axis=1)
    numbers = []
    for ablation in ablations:
        if ablation not in lineup.ablations:
            numbers.append(Number(math.nan, reason="not part of this setting"))
            continue
        a, reference = lineup.ablations.index(ablation), lineup.reference
        is_delta = delta is not None and a != reference
        shown = delta if is_delta and delta is not None else scores
        low, high = intervals[int(is_delta)][a]
        ends = NONE if both is None else tuple(both[int(is_delta)][a].tolist())
        behind, against = has_score[a], np.zeros(len(lineup.seeds), bool)
        if is_delta and reference is not None:
            behind = against = has_score[a] & has_score[reference]
        mean = float(shown.mean[a])
        numbers.append(
            Number(
                mean,
                is_delta,
                float(shown.sd[a]),
                int(shown.n[a]),
                (float(low), float(high)),
                _ids(lineup, known, a, behind),
                _ids(lineup, known, reference or 0, against),
                _why(evidence, known, a, targets) if math.isnan(mean) else "",
                (ends[0], ends[1]),
            )
        )
    return tuple(numbers)


def _ids(
    lineup: Lineup, known: Roster, ablation: int, seeds: Bool[np.ndarray, " s"]
) -> tuple[str, ...]:
    return tuple(known.trials[i].trial_id for i in lineup.trials[ablation][seeds] if i >= 0)


def _why(evidence: Evidence, known: Roster, ablation: int, targets: tuple[int, ...]) -> str:
    """Why there is no number: what its trials say, what was not scored, what cannot be paired."""
    block, lineup = evidence.block, evidence.block.lineup
    trials = [known.trials[i] for i in lineup.trials[ablation] if i >= 0]
    if not any(trial.status == "done" for trial in trials):
        return "; ".join(f"seed {trial.seed}: {trial.reason}" for trial in trials) or "not run"
    missing = [t for t in evidence.lacking[ablation] if t in targets]
    if missing:
        return f"no score on {', '.join(labels.language(block.targets[t]) for t in missing)}"
    if not targets:
        return "no other language was tested"
    reference = lineup.reference
    if reference is not None and reference != ablation:
        lacking = _why(evidence, known, reference, targets) if evidence.lacking[reference] else ""
        return f"nothing to compare with: {lacking or 'no seed in common with the reference'}"
    return "no score"
