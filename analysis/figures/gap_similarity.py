"""Transfer gap against similarity to the source: one named point a language."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from analysis import labels, printed
from analysis.correlation import Correlation
from analysis.evidence import Alignment
from analysis.figures import style
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
    tips = {}
    with style.canvas() as (figure, axes):
        axes.set_xlim(*style.limits(x, 0.14))
        axes.set_ylim(*style.limits(y, 0.14))
        for i, name in enumerate(names):
            axes.plot(
                [x[i]],
                [y[i]],
                "o",
                color=style.ACCENT,
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                gid=f"tip-{i}",
            )
            tips[f"tip-{i}"] = f"{name}: similarity {x[i]:.3f}, gap {y[i]:.1f} points"
        axes.locator_params(axis="x", nbins=6)
        _name_points(axes, x, y, names)
        axes.set_xlabel(data.x_label)
        axes.set_ylabel("cross-lingual gap, points (lower is better)")
        found = data.correlation
        if not np.isnan(found.rho_score):
            rho = printed.typeset(f"{found.rho_score:.2f}")
            text = f"rho(score, similarity) = {rho}, n = {found.n}, {printed.p_value(found.p)}"
            axes.set_title(text, fontsize=8, fontweight="normal", color=style.QUIET)
    return Drawing(figure, tips)


def _name_points(
    axes: Axes, x: Float[np.ndarray, " t"], y: Float[np.ndarray, " t"], names: list[str]
) -> None:
    """Write each name beside its point, where it covers least."""
    width, height = np.diff(axes.get_xlim())[0], np.diff(axes.get_ylim())[0]
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    px, py = (x - left) / width, (y - bottom) / height
    taken = [(a - 0.012, b - 0.016, a + 0.012, b + 0.016) for a, b in zip(px, py, strict=True)]
    for i in np.argsort(-py, kind="stable"):
        w, h = 0.021 * len(names[i]), 0.05
        spots = [
            (dx * (w / 2 + 0.02) if dy == 0 else dx * (w / 2), dy * 0.045)
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
        ]
        boxes = [
            (px[i] + dx - w / 2, py[i] + dy - h / 2, px[i] + dx + w / 2, py[i] + dy + h / 2)
            for dx, dy in spots
        ]
        costs = [
            sum(_overlap(box, other) for k, other in enumerate(taken) if k != i)
            + 10 * _outside(box)
            for box in boxes
        ]
        best = int(np.argmin(np.round(costs, 9)))
        taken.append(boxes[best])
        dx, dy = spots[best]
        axes.text(
            left + (px[i] + dx) * width,
            bottom + (py[i] + dy) * height,
            names[i],
            ha="center",
            va="center",
            fontsize=7.5,
        )


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    return wide * high


def _outside(box: tuple[float, ...]) -> float:
    return max(0.0, -box[0]) + max(0.0, -box[1]) + max(0.0, box[2] - 1) + max(0.0, box[3] - 1)
