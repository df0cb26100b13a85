"""Transfer gap against similarity to the source: one named point a language."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from analysis import labels, printed
from analysis.correlation import Correlation
from analysis.evidence import Alignment
from analysis.figures import style
from analysis.figures.points import draw_points
from analysis.figures.style import Drawing


@dataclass(frozen=True, slots=True)
class GapSimilarity:
    """A figure of points.

    Attributes:
        title: One line.
        x_label: Which similarity.
        languages: Codes.
        similarity: Mean over layers; fractions.
        gap: Cross-lingual gap; fractions.
        correlation: Of the two.
    """

    title: str
    x_label: str
    languages: tuple[str, ...]
    similarity: Float[np.ndarray, " t"]
    gap: Float[np.ndarray, " t"]
    correlation: Correlation

    def csv(self) -> str:
        """One row a language."""
        rows = zip(self.languages, self.similarity, self.gap, strict=True)
        return style.to_csv(("language", "similarity", "gap"), rows)


def gap_similarity_data(alignment: Alignment, state: str, source: str) -> GapSimilarity | None:
    """Points of one state of the encoder; None where it was not measured."""
    if state not in alignment.similarity:
        return None
    measure = labels.measure(alignment.profile.measure)
    return GapSimilarity(
        f"Transfer gap against similarity, {state}",
        f"{measure} with {labels.language(source)}, mean of layers",
        alignment.targets,
        alignment.similarity[state],
        alignment.gap,
        alignment.whole[state],
    )


def draw_gap_similarity(data: GapSimilarity) -> Drawing:
    """Named points, the gap in points of the metric, rho in a corner."""
    there = np.flatnonzero(~(np.isnan(data.similarity) | np.isnan(data.gap)))
    x, y = data.similarity[there], data.gap[there] * 100
    names = [labels.language(data.languages[i]) for i in there]
    with style.canvas() as (figure, axes):
        tips = draw_points(
            axes, x, y, names, lambda i: f"similarity {x[i]:.3f}, gap {y[i]:.1f} points"
        )
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(data.x_label)
        axes.set_ylabel("cross-lingual gap, points (lower is better)")
        found = data.correlation
        if not np.isnan(found.rho_score):
            rho = printed.typeset(f"{found.rho_score:.2f}")
            text = f"rho(score, similarity) = {rho}, n = {found.n}, {printed.p_value(found.p)}"
            axes.set_title(text, fontsize=8, fontweight="normal", color=style.QUIET)
    return Drawing(figure, tips)
