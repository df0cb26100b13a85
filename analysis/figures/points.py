"""Named points: each name beside its point, where it covers least."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from analysis.figures import style

_LETTER, _LINE = 0.0165, 0.045
"""Width of a letter and height of a line of a name, in units of the axes."""

_FARTHER = 2e-6
"""What a spot costs beside the one before it in the list: of two free ones the nearer wins."""


def draw_points(
    axes: Axes,
    x: Float[np.ndarray, " t"],
    y: Float[np.ndarray, " t"],
    names: list[str],
    tip: Callable[[int], str],
) -> dict[str, str]:
    """Draw points and their names into axes that fit them.

    Args:
        axes: Where.
        x: Places.
        y: Places.
        names: One a point.
        tip: Index of a point -> what to say of it beside its name.

    Returns:
        Tips for `style.Drawing`.
    """
    axes.set_xlim(*style.limits(x, 0.14))
    axes.set_ylim(*style.limits(y, 0.14))
    for i in range(len(names)):
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
    _name_points(axes, x, y, names)
    return {f"tip-{i}": f"{name}: {tip(i)}" for i, name in enumerate(names)}


def _name_points(
    axes: Axes, x: Float[np.ndarray, " t"], y: Float[np.ndarray, " t"], names: list[str]
) -> None:
    """Write each name beside its point, where it covers least."""
    width, height = np.diff(axes.get_xlim())[0], np.diff(axes.get_ylim())[0]
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    px, py = (x - left) / width, (y - bottom) / height
    points = [(a - 0.012, b - 0.018, a + 0.012, b + 0.018) for a, b in zip(px, py, strict=True)]
    taken: list[tuple[float, ...]] = []
    for i in np.argsort(-py, kind="stable"):
        w = _LETTER * len(names[i])
        spots = [(side * (w / 2 + 0.018), up * 0.028) for side in (1, -1) for up in (0, 1, -1)]
        spots += [(side * w / 4, up * 0.045) for up in (1, -1) for side in (0, 1, -1)]
        spots += [(side * w / 2, up * 0.08) for up in (1, -1) for side in (0, 1, -1)]
        boxes = [
            (px[i] + dx - w / 2, py[i] + dy - _LINE / 2, px[i] + dx + w / 2, py[i] + dy + _LINE / 2)
            for dx, dy in spots
        ]
        costs = [
            sum(_overlap(box, other) for other in taken)
            + sum(3 * _overlap(box, other) for other in points)
            + 10 * _outside(box)
            + _FARTHER * place
            for place, box in enumerate(boxes)
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
