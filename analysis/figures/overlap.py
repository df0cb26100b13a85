"""Zero-shot score against subword overlap (Wu and Dredze 2019, Figure 3): a point a language."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from analysis import labels, printed
from analysis.figures import style
from analysis.figures.points import draw_points
from analysis.figures.style import Drawing
from analysis.overlap import Pearson
from analysis.shared import Shared

_WHAT = {"types": "distinct subwords", "tokens": "subwords"}


@dataclass(frozen=True, slots=True)
class OverlapPoints:
    """A figure of points.

    Attributes:
        title: One line.
        x_label: What share.
        y_label: Which metric.
        languages: Codes.
        overlap: Fractions.
        score: Fractions.
        correlation: Of the two.
    """

    title: str
    x_label: str
    y_label: str
    languages: tuple[str, ...]
    overlap: Float[np.ndarray, " t"]
    score: Float[np.ndarray, " t"]
    correlation: Pearson

    def csv(self) -> str:
        """One row a language."""
        rows = zip(self.languages, self.overlap, self.score, strict=True)
        return style.to_csv(("language", "overlap", "score"), rows)


def overlap_data(shared: Shared, kind: str, source: str) -> OverlapPoints:
    """Points of one way to count."""
    block = shared.block
    return OverlapPoints(
        f"Zero-shot score against subword overlap, {kind}",
        f"{_WHAT[kind]} that the {labels.language(source)} training set has, too, %",
        f"{labels.metric(block.metric)}, % (mean over seeds)",
        tuple(block.targets[t] for t in shared.targets),
        shared.overlap[kind],
        shared.score,
        shared.correlation[kind],
    )


def draw_overlap(data: OverlapPoints) -> Drawing:
    """Named points in percent, Pearson's r above."""
    there = np.flatnonzero(~np.isnan(data.score))
    x, y = data.overlap[there] * 100, data.score[there] * 100
    names = [labels.language(data.languages[i]) for i in there]
    with style.canvas() as (figure, axes):
        tips = draw_points(axes, x, y, names, lambda i: f"overlap {x[i]:.1f} %, score {y[i]:.1f} %")
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(data.x_label)
        axes.set_ylabel(data.y_label)
        found = data.correlation
        if not np.isnan(found.r):
            r = printed.typeset(f"{found.r:.2f}")
            text = f"Pearson's r = {r}, n = {found.n}, {printed.p_value(found.p)}"
            axes.set_title(text, fontsize=8, fontweight="normal", color=style.QUIET)
    return Drawing(figure, tips)
