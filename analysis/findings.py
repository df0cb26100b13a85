"""What the numbers show, in sentences made from them, with what is known of their uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis import labels, printed
from analysis.evidence import Alignment, Effect, Evidence, gap_intervals
from analysis.intervals import Interval
from analysis.profiles import FINE_TUNED, PRETRAINED
from analysis.roster import Roster
from analysis.shared import Shared
from analysis.sheets import setting_title

NOTEWORTHY = 0.005
"""Half a point: smaller losses are called none."""

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """What one block shows.

    Attributes:
        title: Which block.
        sentences: The most important first.
        caveat: How far to trust them.
    """

    title: str
    sentences: tuple[str, ...]
    caveat: str


def finding(
    evidence: Evidence,
    alignments: Sequence[Alignment],
    known: Roster,
    shared: Shared | None = None,
) -> Finding:
    """Say what one block shows."""
    block = evidence.block
    setting = known.settings[block.lineup.setting]
    several = len({s.encoder for s in known.settings}) > 1
    title = setting_title(setting, several_encoders=several)
    source = labels.language(setting.source)
    said = [_reference(evidence, source), *_effects(evidence, source)]
    said += [text for alignment in alignments for text in _alignment(alignment, source)]
    said += [] if shared is None else _shared(shared, source)
    title = f"{title} ({labels.metric(block.metric)}, {block.family})"
    return Finding(title, tuple(text for text in said if text), _caveat(evidence))


def _reference(evidence: Evidence, source: str) -> str:
    block, reference = evidence.block, evidence.block.lineup.reference
    if reference is None:
        return "The reference was not run, so there is nothing to compare the ablations with."
    x, n = float(evidence.scores_x.mean[reference]), len(block.others)
    if block.source is None or math.isnan(x):
        return ""
    own = float(evidence.scores.mean[reference, block.source])
    if math.isnan(own):
        return ""
    gap = own - x if evidence.gap_x is None else float(evidence.gap_x.mean[reference])
    sure = _gap_bounds(evidence, reference)
    return (
        f"The reference scores {printed.score(own, 1)} on {source} and {printed.score(x, 1)} on "
        f"average over {_others(n)}: a cross-lingual gap of {_signed(gap)} points{sure}."
    )


def _gap_bounds(evidence: Evidence, a: int) -> str:
    """The widest interval of a gap that there is: over seeds and sentences, else over seeds."""
    over_seeds, both = gap_intervals(evidence, a)
    if not math.isnan(both[0]):
        return f" (95 % interval {_signed(both[0])} to {_signed(both[1])} {over_both(evidence)})"
    if not math.isnan(over_seeds[0]):
        return f" (95 % interval {_signed(over_seeds[0])} to {_signed(over_seeds[1])} over seeds)"
    return ""


def _effects(evidence: Evidence, source: str) -> list[str]:
    whole = [e for e in evidence.effects if not math.isnan(e.others.mean + e.source.mean)]
    if not whole:
        return []
    worst = min(whole, key=lambda e: e.others.mean)
    best = max(whole, key=lambda e: e.others.mean)
    said = [_worst(evidence, worst, source)]
    if best is not worst:
        said.append(_best(best, source))
    hurt = [
        e
        for e in whole
        if e.p_beyond[1] < ALPHA and e.beyond.mean < 0 and e.others.mean <= -NOTEWORTHY
    ]
    names = ", ".join(labels.ablation_column(e.ablation) for e in hurt)
    n = len(evidence.block.others)
    if hurt:
        verb = "one costs" if len(hurt) == 1 else f"{len(hurt)} cost"
        said.append(
            f"Of {len(whole)} ablations, {verb} the other languages more than {source} "
            f"beyond chance (sign flips over {n} languages, Holm-corrected p < {ALPHA}): {names}."
        )
    elif n >= 2:  # noqa: PLR2004 - one language has no chance to speak of
        least = min(1.0, 2.0 ** (1 - n) * len(whole))
        said.append(
            f"No ablation can be shown to cost the other languages more than {source} (sign flips "
            f"over {n} languages, Holm-corrected p < {ALPHA})."
            + (f" With {n} languages none could: the least p is {least:.2f}." * (least >= ALPHA))
        )
    return said


def _worst(evidence: Evidence, effect: Effect, source: str) -> str:
    phrase, n = labels.ablation_phrase(effect.ablation), len(evidence.block.others)
    if effect.others.mean > -NOTEWORTHY:
        return (
            "No ablation costs the other languages half a point on average; "
            f"{phrase} comes closest."
        )
    text = f"{_capital(phrase)} {_costs(effect.source.mean, source)} and {_others(n)} "
    text += f"{printed.prose(effect.others.mean)} on average{_bounds(effect)}"
    ratio = effect.others.mean / effect.source.mean if effect.source.mean else math.inf
    if effect.source.mean <= -NOTEWORTHY and ratio > 1.5:  # noqa: PLR2004 - worth a word
        text += f", {ratio:.1f} times as much" if ratio < 100 else ""  # noqa: PLR2004 - as above
    row = evidence.block.lineup.ablations.index(effect.ablation)
    if evidence.delta is not None and n > 1:
        by = {t: float(evidence.delta.mean[row, t]) for t in evidence.block.others}
        most, least = min(by, key=lambda t: by[t]), max(by, key=lambda t: by[t])
        targets = evidence.block.targets
        text += (
            f"; from {_signed(by[most])} ({labels.language(targets[most])}) to "
            f"{_signed(by[least])} ({labels.language(targets[least])})"
        )
    return text + "."


def _best(effect: Effect, source: str) -> str:
    phrase = _capital(labels.ablation_phrase(effect.ablation))
    own, others = _signed(effect.source.mean, plus=True), _signed(effect.others.mean, plus=True)
    verdict = "costs neither" if min(effect.source.mean, effect.others.mean) > -NOTEWORTHY else (
        "costs the other languages least"
    )  # fmt: skip
    return f"{phrase} {verdict}: {own} on {source}, {others} on the others."


def _costs(delta: float, source: str) -> str:
    if delta >= 0:
        return (
            f"gains {source} {printed.prose(delta)} points"
            if delta > 0
            else f"leaves {source} as it is"
        )
    return f"costs {source} {printed.prose(delta)} points"


def _bounds(effect: Effect) -> str:
    parts = []
    if not math.isnan(effect.others.over_seeds[0]):
        low, high = _positive(effect.others.over_seeds)
        parts.append(f"95 % interval {low} to {high} over {effect.others.n} seeds")
    if not math.isnan(effect.others.over_both[0]):
        low, high = _positive(effect.others.over_both)
        what = "seeds and sentences" if effect.others.n > 1 else "the test sets' sentences"
        parts.append(f"{'' if parts else '95 % interval '}{low} to {high} over {what}")
    if not math.isnan(effect.others.over_targets[0]):
        low, high = _positive(effect.others.over_targets)
        parts.append(f"{'' if parts else '95 % interval '}{low} to {high} over languages")
    return f" ({'; '.join(parts)})" if parts else ""


def over_both(evidence: Evidence) -> str:
    """What the intervals over seeds and sentences are over; empty where there are none."""
    if evidence.spread is None or np.isnan(evidence.spread.scores).all():
        return ""
    n = int(evidence.scores.n.max(initial=0))
    return "over seeds and sentences" if n > 1 else "over sentences, one seed"


def _positive(interval: Interval) -> tuple[str, str]:
    """A loss's interval with the loss counted positive, smaller end first."""
    low, high = sorted((-interval[0], -interval[1]))
    return _signed(low), _signed(high)


def _alignment(alignment: Alignment, source: str) -> list[str]:
    measure = labels.measure(alignment.profile.measure)
    said = []
    for state in (FINE_TUNED, PRETRAINED):
        found = alignment.whole.get(state)
        if found is None or math.isnan(found.rho_score):
            continue
        where = "inside the fine-tuned reference" if state == FINE_TUNED else "before fine-tuning"
        rho, (low, high) = found.rho_score, found.interval
        sure = found.p < ALPHA
        how = "better" if rho > 0 else "worse"
        opening = (
            f"Languages that are closer to {source} {where} ({measure}) transfer {how}"
            if sure
            else f"Whether languages that are closer to {source} {where} ({measure}) transfer "
            f"{how} cannot be told from chance"
        )
        spread = "" if math.isnan(low) else f", 95 % interval {low:.2f} to {high:.2f}"
        seeds = (
            f"; single seeds {found.seed_mean:.2f} ± {found.seed_sd:.2f}"
            if found.n_seeds > 1
            else ""
        )
        test = f"n = {found.n} languages, {printed.p_value(found.p)}{spread}{seeds}"
        said.append(printed.typeset_numbers(f"{opening}: Spearman's rho = {rho:.2f} ({test})."))
    return said


def _shared(shared: Shared, source: str) -> list[str]:
    """What subword overlap has to do with scores, by distinct subwords."""
    found = shared.correlation["types"]
    if math.isnan(found.r):
        return []
    how = "more" if found.r > 0 else "fewer"
    opening = (
        f"Languages that share {how} subwords with the {source} training set score higher"
        if found.p < ALPHA
        else f"Whether languages that share {how} subwords with the {source} training set score "
        "higher cannot be told from chance"
    )
    test = f"n = {found.n} languages, {printed.p_value(found.p)}"
    return [printed.typeset_numbers(f"{opening}: Pearson's r = {found.r:.2f} ({test}).")]


def _caveat(evidence: Evidence) -> str:
    lineup = evidence.block.lineup
    counts = [int(n) for n in evidence.scores.n.max(axis=1)] if evidence.scores.n.size else [0]
    least, most = min(counts), max(counts)
    if most == 0:
        return "No trial of this setting has finished."
    if most == 1:
        text = (
            "One seed: these numbers carry no interval over seeds, and a difference of a point may "
            "be the luck of one run. Intervals over languages say how much the choice of languages "
            "matters, not how a new run would come out."
        )
    elif most < 5:  # noqa: PLR2004 - five is what the papers use
        freedom = f"{most - 1} degree{'s' if most > 2 else ''} of freedom"  # noqa: PLR2004 - plural
        text = (
            f"{most} seeds: the intervals over seeds are Student's t with {freedom}, "
            "wide and only as good as the normal curve fits."
        )
    else:
        text = f"{most} seeds; intervals over seeds are Student's t on paired differences."
    if least < most:
        few = [
            labels.ablation_column(name)
            for name, n in zip(lineup.ablations, counts, strict=True)
            if n < most
        ]
        text += f" Fewer seeds than the others: {', '.join(few)}."
    return text + (f" {_capital(lineup.note)}." if lineup.note else "")


def _others(n: int) -> str:
    return "the other language" if n == 1 else f"the {n} other languages"


def _signed(fraction: float, *, plus: bool = False) -> str:
    text = printed.typeset(printed.delta(fraction, 1))
    return text if plus else text.removeprefix("+")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def failures(known: Roster) -> str:
    """How many trials have no numbers, by kind; empty when all have."""
    counts = {
        status: sum(trial.status == status for trial in known.absent)
        for status in ("failed", "pruned", "missing")
    }
    if not any(counts.values()):
        return ""
    total = len(known.trials) + len(known.probes)
    parts = [f"{n} {status}" for status, n in counts.items() if n]
    verb = "has" if sum(counts.values()) == 1 else "have"
    return (
        f"{sum(counts.values())} of {total} trials {verb} no numbers ({', '.join(parts)}); "
        "they enter no mean and are listed below."
    )


def has_numbers(evidence: Evidence) -> bool:
    """Whether anything of a block was measured."""
    return bool(np.isfinite(evidence.block.values).any())
