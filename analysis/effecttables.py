"""Differences and cross-lingual gaps with all that is known of their spread: CSV and Markdown."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from analysis import labels, printed
from analysis.evidence import Estimate, Evidence, gap_intervals
from analysis.figures.style import to_csv
from analysis.findings import NOTEWORTHY, over_both
from analysis.formats import plain
from analysis.gaps import Paired
from analysis.intervals import NONE, Interval, t_interval
from analysis.overlap import Pearson
from analysis.page import Chapter
from analysis.power import seeds_for_width, seeds_to_tell
from analysis.roster import Roster
from analysis.shared import KINDS

ADDRESS = ("encoder", "task", "detail", "family", "metric", "source")
"""Columns that say which block a row is of."""

_EFFECT = (
    *("delta", "mean", "sd", "n", "low_seeds", "high_seeds", "low_targets", "high_targets"),
    *("low_both", "high_both", "p_targets", "p_holm"),
    *("seeds_for_half_point", "seeds_to_tell_half_point"),
)
_GAP = ("target", "mean", "sd", "n", "low_seeds", "high_seeds", "low_both", "high_both")


def address(chapter: Chapter, known: Roster) -> tuple[str, ...]:
    """The values of `ADDRESS` for one chapter."""
    block = chapter.evidence.block
    setting = known.settings[block.lineup.setting]
    whose = (setting.encoder, setting.task, setting.detail)
    return (*whose, block.family, block.metric, setting.source)


def effects_csv(chapters: Sequence[Chapter], known: Roster) -> str:
    """One row a difference: on the source, on the others, and beyond the source."""
    rows = [
        (*address(chapter, known), effect.ablation, name, estimate.mean, estimate.sd, estimate.n,
         *estimate.over_seeds, *estimate.over_targets, *estimate.over_both, *p,
         seeds_for_width(estimate.sd, NOTEWORTHY), seeds_to_tell(NOTEWORTHY, estimate.sd))
        for chapter in chapters
        for effect in chapter.evidence.effects
        for name, estimate, p in (
            ("source", effect.source, (math.nan, math.nan)),
            ("others", effect.others, effect.p_others),
            ("beyond", effect.beyond, effect.p_beyond),
        )
    ]  # fmt: skip
    return to_csv((*ADDRESS, "ablation", *_EFFECT), rows)


def gaps_csv(chapters: Sequence[Chapter], known: Roster) -> str:
    """One row a cross-lingual gap: of each target, and of their mean (X)."""
    rows = [
        (*address(chapter, known), ablation, target, *_of(paired, at), *seeds, *both)
        for chapter in chapters
        for a, ablation in enumerate(chapter.evidence.block.lineup.ablations)
        for target, paired, at, seeds, both in _gaps(chapter.evidence, a)
    ]
    return to_csv((*ADDRESS, "ablation", *_GAP), rows)


def _of(paired: Paired, at: tuple[int, ...]) -> tuple[float, float, int]:
    return float(paired.mean[at]), float(paired.sd[at]), int(paired.n[at])


def _gaps(
    evidence: Evidence, a: int
) -> Iterator[tuple[str, Paired, tuple[int, ...], Interval, Interval]]:
    """Gaps of one ablation: target, numbers, where among them, intervals over seeds and both."""
    if evidence.gap is None or evidence.gap_x is None:
        return
    block, spread = evidence.block, evidence.spread
    yield "X", evidence.gap_x, (a,), *gap_intervals(evidence, a)
    for t in block.others:
        both = NONE if spread is None else _pair(spread.gap[a, t])
        yield block.targets[t], evidence.gap, (a, t), _student(evidence.gap, (a, t)), both


def _student(paired: Paired, at: tuple[int, ...]) -> Interval:
    return t_interval(*_of(paired, at))


def _pair(ends: Float[np.ndarray, " 2"]) -> Interval:
    low, high = ends
    return float(low), float(high)


def overlap_csv(chapters: Sequence[Chapter], known: Roster) -> str:
    """One row a target: its subword overlap and score; r and p of all targets in each row."""
    rows = [
        (*address(chapter, known), block.targets[t], block.treebanks[t],
         shared.overlap["types"][i], shared.overlap["tokens"][i],
         int(shared.n_types[i]), int(shared.n_tokens[i]), shared.score[i],
         *(value for kind in KINDS for value in _pearson(shared.correlation[kind])))
        for chapter in chapters
        for shared, block in [(chapter.shared, chapter.evidence.block)]
        if shared is not None
        for i, t in enumerate(shared.targets)
    ]  # fmt: skip
    points = ("target", "treebank", "types", "tokens", "n_types", "n_tokens", "score")
    tests = (f"{name}_of_{kind}" for kind in KINDS for name in ("r", "p", "targets"))
    return to_csv((*ADDRESS, *points, *tests), rows)


def _pearson(found: Pearson) -> tuple[float, float, int]:
    return found.r, found.p, found.n


def effects_markdown(chapters: Sequence[Chapter]) -> str:
    """The differences and gaps of every block as tables, in points."""
    parts = []
    for chapter in chapters:
        evidence = chapter.evidence
        rows = [*_effect_rows(evidence), *_gap_rows(evidence)]
        if not rows:
            continue
        both = over_both(evidence)
        head = ("", "ablation", "points", "over seeds", *([both] if both else []), "n seeds")
        table = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
        table += [[*row[:4], *([row[4]] if both else []), row[5]] for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in table]
        parts.append(
            "\n".join([f"**{plain(chapter.finding.title)}** (95 % intervals)", "", *lines])
        )
    return "\n\n".join(parts) + "\n" if parts else ""


def _effect_rows(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    for effect in evidence.effects:
        name = plain(labels.ablation_column(effect.ablation))
        for what, estimate in (
            ("source", effect.source),
            ("others", effect.others),
            ("beyond", effect.beyond),
        ):
            yield (f"difference, {what}", name, *_shown(estimate))


def _gap_rows(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    if evidence.gap_x is None:
        return
    for a, ablation in enumerate(evidence.block.lineup.ablations):
        seeds, both = gap_intervals(evidence, a)
        mean, sd, n = _of(evidence.gap_x, (a,))
        name = plain(labels.ablation_column(ablation))
        yield "gap", name, *_shown(Estimate(mean, sd, n, seeds, NONE, both), is_gap=True)


def _shown(estimate: Estimate, *, is_gap: bool = False) -> tuple[str, str, str, str]:
    text = (printed.score if is_gap else printed.delta)(estimate.mean) or printed.DASH
    ends = (interval(estimate.over_seeds), interval(estimate.over_both))
    return text, *ends, str(estimate.n)


def interval(ends: Interval) -> str:
    """An interval in points, as printed; a dash where there is none."""
    if math.isnan(ends[0]):
        return printed.DASH
    return f"{printed.score(ends[0], 1)} to {printed.score(ends[1], 1)}"
