"""Which figures a block has, and their files: PNG and SVG, the data as CSV."""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from analysis.blocks import Block
from analysis.evidence import Alignment, Evidence
from analysis.figures import freezing, gap_similarity, heatmap, layer_curves, probing, style
from analysis.figures.gap_similarity import GapSimilarity, draw_gap_similarity
from analysis.figures.heatmap import Heatmap, draw_heatmap
from analysis.figures.layer_curves import Curves, draw_curves
from analysis.figures.overlap import OverlapPoints, draw_overlap, overlap_data
from analysis.figures.painters import Files, Painters
from analysis.figures.style import Drawing
from analysis.folder import Folder, slug
from analysis.page import Picture
from analysis.profiles import FINE_TUNED, PRETRAINED, Profile
from analysis.roster import Roster
from analysis.shared import KINDS, Shared

_TELLING = 5
"""Fewer languages have no rank correlation that could be told from chance (4: p = 0.08 at best)."""

N_FIGURES = 9
"""Blocks that get figures."""

_FIGURES = 7
"""About as many has a block."""

_CHANCE = " Grey: shuffled pairs of sentences, mean to 95 % quantile."
_BEFORE = "Before fine-tuning."
_HARDEST = "Fine-tuned under the ablation that costs the other languages most; mean over seeds."
_LINES = "Black: reference; dashed: before fine-tuning; colours: ablations."


@dataclass(frozen=True, slots=True)
class Plan:
    """A figure to be made: its data, how to draw it, what to say about it."""

    stem: str
    data: Curves | Heatmap | GapSimilarity | OverlapPoints
    caption: str

    def draw(self) -> Drawing:
        """Draw it."""
        if isinstance(self.data, Curves):
            return draw_curves(self.data)
        if isinstance(self.data, Heatmap):
            return draw_heatmap(self.data)
        if isinstance(self.data, OverlapPoints):
            return draw_overlap(self.data)
        return draw_gap_similarity(self.data)


def plans(
    evidence: Evidence, profile: Profile | None, alignments: Sequence[Alignment], known: Roster
) -> Iterator[Plan]:
    """The figures of a block, the most telling first."""
    block = evidence.block
    source = known.settings[block.lineup.setting].source
    deltas = heatmap.delta_data(evidence)
    if deltas is not None:
        yield Plan("deltas", deltas, "Each language under each ablation; orange is a loss.")
    if profile is not None:
        yield from _curves(evidence, profile, source)
    for alignment in alignments:
        for state in (FINE_TUNED, PRETRAINED):
            points = gap_similarity.gap_similarity_data(alignment, state, source)
            if points is not None:
                yield Plan(f"gap-{state}", points, "Each point is a language; low is good.")
        if len(alignment.targets) >= _TELLING:
            rho = layer_curves.correlation_data(alignment)
            yield Plan("correlation-by-layer", rho, "Up: closer languages transfer better.")
    cells_of = None if profile is None else heatmap.similarity_data(profile, source)
    if cells_of is not None:
        yield Plan("similarity", cells_of, "Fine-tuned reference, mean over seeds.")


def overlap_plans(shared: Shared | None, source: str) -> Iterator[Plan]:
    """The figures of subword overlap: distinct subwords, and all of them."""
    if shared is not None:
        for kind in KINDS:
            points = overlap_data(shared, kind, source)
            yield Plan(
                f"overlap-{kind}", points, "Each point is a language; the source is left out."
            )


def _curves(evidence: Evidence, profile: Profile, source: str) -> Iterator[Plan]:
    """Similarity by layer: of the ablations, and of each target in three kinds of models."""
    by_ablation = layer_curves.by_ablation_data(profile, source)
    yield Plan("layers-by-ablation", by_ablation, _LINES + _chance(by_ablation))
    block = evidence.block
    scores = evidence.scores.mean[block.lineup.reference or 0]
    pairs = list(zip(block.targets, scores.tolist(), strict=True))
    by_target = layer_curves.by_target_data(profile, source, pairs)
    if by_target is not None:
        yield Plan("layers-by-target", by_target, "Mean over seeds." + _chance(by_target))
    for models, caption in ((PRETRAINED, _BEFORE), (_hardest(evidence), _HARDEST)):
        other = layer_curves.by_target_data(profile, source, pairs, models)
        if other is not None:
            yield Plan(f"layers-by-target-{slug(models)}", other, caption)


def _chance(curves: Curves) -> str:
    """What the grey band is, where there is one."""
    return "" if curves.null is None else _CHANCE


def _hardest(evidence: Evidence) -> str:
    """The ablation that costs the other languages most; empty for none."""
    known = [effect for effect in evidence.effects if not math.isnan(effect.others.mean)]
    return min(known, key=lambda e: e.others.mean).ablation if known else ""


def layer_plan(block: Block, every: Sequence[Block]) -> Iterator[Plan]:
    """The figure of a task that scores each layer on its own."""
    curves = probing.probing_data(block, every)
    if curves is not None:
        yield Plan("score-by-layer", curves, "The encoder is not trained.")


def study_plans(found: Sequence[Evidence], known: Roster) -> Iterator[Plan]:
    """Figures that lay the settings of a study side by side."""
    frozen = freezing.freezing_data(found, known)
    if frozen is not None:
        yield Plan("freezing", frozen, "Framed: the best depth of each row. Orange is a loss.")


@dataclass(frozen=True, slots=True)
class Sketch:
    """A figure whose data are written and which somebody draws.

    Attributes:
        plan: What it shows.
        csv: File of its data.
        drawn: Its SVG and PNG, when they are there.
    """

    plan: Plan
    csv: Path
    drawn: Future[Files]

    def finish(self, folder: Folder) -> Picture:
        """Wait for the figure and write its files."""
        stem = self.csv.relative_to(folder.root).with_suffix("").as_posix()
        text, image = self.drawn.result()
        files = (self.csv, folder.write(f"{stem}.svg", text), folder.write(f"{stem}.png", image))
        links = tuple(
            (path.suffix[1:].upper(), path.relative_to(folder.root).as_posix()) for path in files
        )
        title, caption = self.plan.data.title, self.plan.caption
        alt = f"{title}. {caption} The numbers are in the CSV file."
        return Picture(title, caption, style.inline(text, slug(stem), alt), links)


def sketch(folder: Folder, name: str, plan: Plan, painters: Painters | None) -> Sketch | None:
    """Write a figure's data; have it drawn if there are painters."""
    csv = folder.write(f"figures/{name}-{plan.stem}.csv", plan.data.csv())
    return None if painters is None else Sketch(plan, csv, painters.draw(plan))


def start_painters(n_settings: int, n_figures: int = N_FIGURES) -> Painters:
    """Who draws the figures of so many settings; leave the block to end them."""
    return Painters(paint, _FIGURES * min(n_figures, n_settings))


def paint(plan: Plan) -> Files:
    """Draw a figure: SVG and PNG."""
    drawing = plan.draw()
    return style.svg(drawing), style.png(drawing)
