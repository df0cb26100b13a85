"""Tables as values: rows of numbers that know their trials; nothing is rounded or drawn here.

`main_sheet` has the shape of Table 1 of Muller et al. (2021), `target_sheet` that of Tables 6-8.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from analysis import labels
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
        of = _Lines(evidence, known, ablations)
        lines += [replace(line, heads=(task, *line.heads)) for line in (of.source(), *of.mean())]
    title = "The source language, and the mean of the other languages"
    return Sheet("main", title, ("Task", "Source → target"), ablations, tuple(lines))


def target_sheet(evidence: Evidence, known: Roster, name: str) -> Sheet:
    """The mean over other languages, then each target; `name` is the stem of its files."""
    block = evidence.block
    setting = known.settings[block.lineup.setting]
    ablations = block.lineup.ablations
    of = _Lines(evidence, known, ablations)
    lines = [*of.mean(), *(of.target(t) for t in range(len(block.targets)))]
    several = len({setting.encoder for setting in known.settings}) > 1
    title = f"{setting_title(setting, several_encoders=several)}: {labels.metric(block.metric)}"
    return Sheet(name, f"{title} on {block.family}", ("Target",), ablations, tuple(lines))


class _Lines:
    """The lines of one block.

    Args:
        evidence: Where numbers come from.
        known: Who took part.
        ablations: Columns.
    """

    def __init__(self, evidence: Evidence, known: Roster, ablations: Sequence[str]) -> None:
        self._evidence = evidence
        self._known = known
        self._ablations = ablations
        self._ids: dict[tuple[int, bytes], tuple[str, ...]] = {}

    def source(self) -> Line:
        """The source language."""
        block = self._evidence.block
        if block.source is not None:
            return self.target(block.source)
        source = self._source
        reason = f"no test set of family {block.family} in {labels.language(source)}"
        numbers = tuple(Number(math.nan, reason=reason) for _ in self._ablations)
        return Line((_arrow(source, source),), self._address("", source), numbers)

    def target(self, target: int) -> Line:
        """One target."""
        evidence, source = self._evidence, self._source
        block, spread, delta = evidence.block, evidence.spread, evidence.delta
        language, treebank = block.targets[target], block.treebanks[target]
        head = _arrow(source, source) if language == source else labels.language(language)
        head += f" ({treebank})" if block.targets.count(language) > 1 else ""
        numbers = self._numbers(
            (target,),
            evidence.scores[:, target],
            None if delta is None else delta[:, target],
            None if spread is None else (spread.scores[:, target], spread.delta[:, target]),
        )
        return Line((head,), self._address(treebank, language), numbers)

    def mean(self) -> tuple[Line, ...]:
        """The mean over the other languages; no line where none was tested."""
        evidence = self._evidence
        others, spread = evidence.block.others, evidence.spread
        if not others:
            return ()
        both = None if spread is None else (spread.scores_x, spread.delta_x)
        numbers = self._numbers(others, evidence.scores_x, evidence.delta_x, both)
        head = f"{labels.language(self._source)} → mean of {len(others)} others"
        if len(others) == 1:
            head = _arrow(self._source, evidence.block.targets[others[0]])
        return (Line((head,), self._address("", "X"), numbers, is_mean=True),)

    @property
    def _source(self) -> str:
        return self._known.settings[self._evidence.block.lineup.setting].source

    def _address(self, test: str, target: str) -> tuple[str, ...]:
        block = self._evidence.block
        setting = self._known.settings[block.lineup.setting]
        whose = (setting.encoder, setting.task, setting.detail, block.family, block.metric)
        return (*whose, setting.source, target, test)

    def _numbers(
        self,
        targets: tuple[int, ...],
        scores: Paired,
        delta: Paired | None,
        both: tuple[Float[np.ndarray, "a 2"], Float[np.ndarray, "a 2"]] | None,
    ) -> tuple[Number, ...]:
        """One number an ablation.

        Args:
            targets: Which targets the line is about.
            scores: One value an ablation of the lineup.
            delta: The same, as difference to the reference.
            both: Intervals of the two over seeds and sentences.
        """
        block = self._evidence.block
        lineup, reference = block.lineup, block.lineup.reference
        shown = [part for part in (scores, delta) if part is not None]
        means, sds, ns = (
            [getattr(p, name).tolist() for p in shown] for name in ("mean", "sd", "n")
        )
        intervals = [t_intervals(part.mean, part.sd, part.n).tolist() for part in shown]
        has_score = ~np.isnan(block.values[:, list(targets)]).all(axis=1)
        numbers = []
        for ablation in self._ablations:
            if ablation not in lineup.ablations:
                numbers.append(Number(math.nan, reason="not part of this setting"))
                continue
            a = lineup.ablations.index(ablation)
            is_delta = delta is not None and a != reference
            behind, against = has_score[a], np.zeros(len(lineup.seeds), bool)
            if is_delta and reference is not None:
                behind = against = has_score[a] & has_score[reference]
            side = int(is_delta)
            mean, (low, high) = means[side][a], intervals[side][a]
            ends = NONE if both is None else tuple(both[side][a].tolist())
            numbers.append(
                Number(
                    mean,
                    is_delta,
                    sds[side][a],
                    ns[side][a],
                    (low, high),
                    self._trials(a, behind),
                    self._trials(reference or 0, against),
                    _why(self._evidence, self._known, a, targets) if math.isnan(mean) else "",
                    (ends[0], ends[1]),
                )
            )
        return tuple(numbers)

    def _trials(self, ablation: int, seeds: Bool[np.ndarray, " s"]) -> tuple[str, ...]:
        """Ids of an ablation's trials of some seeds; most lines ask for the same ones."""
        key = ablation, seeds.tobytes()
        if key not in self._ids:
            rows = self._evidence.block.lineup.trials[ablation][seeds].tolist()
            self._ids[key] = tuple(self._known.trials[i].trial_id for i in rows if i >= 0)
        return self._ids[key]


def _arrow(source: str, target: str) -> str:
    return f"{labels.language(source)} → {labels.language(target)}"


def _task_text(evidence: Evidence, known: Roster) -> str:
    setting = known.settings[evidence.block.lineup.setting]
    several = len({s.encoder for s in known.settings}) > 1
    parts = [labels.task(setting.task), labels.metric(evidence.block.metric)]
    parts += [setting.encoder] * several + [setting.detail] * bool(setting.detail)
    return ", ".join([*parts, evidence.block.family])


def _why(evidence: Evidence, known: Roster, ablation: int, targets: tuple[int, ...]) -> str:
    """Why there is no number: what its trials say, what was not scored, what cannot be paired."""
    block, lineup = evidence.block, evidence.block.lineup
    trials = [known.trials[i] for i in lineup.trials[ablation] if i >= 0]
    if not any(trial.status == "done" for trial in trials):
        return "; ".join(f"seed {trial.seed}: {trial.reason}" for trial in trials) or "not run"
    missing = [t for t in evidence.lacking[ablation] if t in targets]
    if missing:
        return f"no score on {', '.join(labels.language(block.targets[t]) for t in missing)}"
    reference = lineup.reference
    if reference is not None and reference != ablation:
        lacking = _why(evidence, known, reference, targets) if evidence.lacking[reference] else ""
        return f"nothing to compare with: {lacking or 'no seed in common with the reference'}"
    return "no score"
