"""One look for all figures, and their files: the same data give the same bytes."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

INK = "#1c2733"
QUIET = "#66717d"
GRID = "#dfe3e8"
BAND = "#e9ecf0"
REFERENCE = "#111111"
ACCENT = "#0b62a4"
WARM = "#c4570c"
SIZE = (4.6, 3.5)
"""Inches: text stays legible at the width of a phone, and in a column of print."""

_AIR = 0.05
"""Inches around a figure."""

DPI = 200
_RC: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "axes.unicode_minus": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "xling-sweep",
    "figure.dpi": DPI,
    "path.simplify": False,
    "text.hinting": "no_hinting",  # at our resolution nothing is seen of it, and it takes an eighth
    "text.parse_math": False,  # a name with a $ is a name
}
_FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure, ready to be saved.

    Attributes:
        figure: As matplotlib has it.
        tips: Artist id (`tip-...`) -> text shown when the pointer rests on it.
    """

    figure: Figure
    tips: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def canvas(size: tuple[float, float] = SIZE) -> Iterator[tuple[Figure, Axes]]:
    """A figure in our style, without pyplot's global state."""
    with mpl.rc_context(dict(_RC)):
        figure = Figure(figsize=size)
        sheet = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        yield figure, axes
        _fit(figure, axes, sheet)


def _fit(figure: Figure, axes: Axes, sheet: FigureCanvasAgg) -> None:
    """Leave as much room around the axes as their labels take.

    Measured once; matplotlib's constrained layout would measure again for each file, which takes
    half the time of a figure. Names of axes stay where they are then, for the same reason.
    """
    renderer = sheet.get_renderer()
    plot, whole = axes.get_window_extent(renderer), axes.get_tightbbox(renderer)
    assert whole is not None  # noqa: S101 - visible axes have an extent
    wide, high = figure.bbox.width, figure.bbox.height
    air = _AIR * figure.dpi
    left, below = (plot.x0 - whole.x0 + air) / wide, (plot.y0 - whole.y0 + air) / high
    right, above = (whole.x1 - plot.x1 + air) / wide, (whole.y1 - plot.y1 + air) / high
    under = plot.y0 - axes.xaxis.label.get_position()[1]
    beside = plot.x0 - axes.yaxis.label.get_position()[0]
    axes.set_position((left, below, 1 - left - right, 1 - below - above))
    axes.xaxis.set_label_coords(0.5, -under / (high * (1 - below - above)))
    axes.yaxis.set_label_coords(-beside / (wide * (1 - left - right)), 0.5)


def ramp(n: int) -> list[tuple[float, float, float, float]]:
    """`n` colours from dark to light of viridis, which survives colour blindness and grey print."""
    if n == 0:
        return []
    return [tuple(c) for c in mpl.colormaps["viridis"](np.linspace(0.03, 0.75, n))]


def spread(places: Sequence[float], least: float) -> list[float]:
    """Move labels apart: the nearest places in the same order, at least `least` from each other."""
    order = np.argsort(places, kind="stable")
    groups: list[list[int]] = []
    centres: list[float] = []
    for index in order:
        groups.append([int(index)])
        centres.append(float(places[index]))
        while len(groups) > 1:
            need = least * (len(groups[-2]) + len(groups[-1])) / 2
            if centres[-1] - centres[-2] >= need:
                break
            below, above = groups.pop(-2), groups.pop()
            groups.append(below + above)
            total = [float(places[i]) - least * k for k, i in enumerate(below + above)]
            centres[-2:] = [float(np.mean(total)) + least * (len(total) - 1) / 2]
    moved = [0.0] * len(places)
    for group, centre in zip(groups, centres, strict=True):
        for k, index in enumerate(group):
            moved[index] = centre + least * (k - (len(group) - 1) / 2)
    return moved


def label_ends(
    axes: Axes,
    labels: Sequence[tuple[float, float, str, Any]],
    *,
    least: float,
    bold: str = "",
) -> None:
    """Name curves at their right ends, so that no legend has to be matched by colour.

    Args:
        axes: Where.
        labels: x, y, text, colour of each.
        least: Distance between neighbours, in units of y.
        bold: The label to stress.
    """
    moved = spread([y for _, y, _, _ in labels], least)
    for (x, y, text, colour), place in zip(labels, moved, strict=True):
        axes.annotate(
            text,
            (x, y),
            xytext=(x + 0.35, place),
            color=colour,
            fontsize=7.5,
            va="center",
            fontweight="bold" if text == bold else "normal",
            annotation_clip=False,
        )


def png(drawing: Drawing) -> bytes:
    """The figure as PNG, without the opacity that `savefig` adds to each pixel."""
    sheet = drawing.figure.canvas
    assert isinstance(sheet, FigureCanvasAgg)  # noqa: S101 - `canvas` made it
    with mpl.rc_context(dict(_RC)):
        sheet.draw()
    sink = io.BytesIO()
    pixels = Image.fromarray(np.asarray(sheet.buffer_rgba())).convert("RGB")
    pixels.save(sink, "png", dpi=(DPI, DPI), compress_level=3)
    return sink.getvalue()


def svg(drawing: Drawing) -> str:
    """The figure as SVG with real text and with tips; no date, no random id."""
    sink = io.StringIO()
    with mpl.rc_context(dict(_RC)):
        drawing.figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", sink.getvalue(), flags=re.DOTALL)
    text = _slim(text)

    def with_tip(match: re.Match[str]) -> str:
        return f"{match[0]}<title>{escape(drawing.tips.get(match[1], ''))}</title>"

    return re.sub(r'<g id="(tip-[^"]+)">', with_tip, text)


def _slim(text: str) -> str:
    """Half the size, the same picture: one font for all, a hundredth of a point, no idle turns."""
    text = re.sub(r" ?font-family: 'DejaVu Sans'(?:, sans-serif)?;?", "", text)
    text = text.replace("<svg ", f'<svg font-family="{_FONTS}" ', 1)
    text = re.sub(r' transform="rotate\(-?0 [^"]*\)"', "", text)
    digits = re.compile(r"(\.\d\d)\d+")
    text = re.sub(r' (?:d|x|y)="[^"]*"', lambda match: digits.sub(r"\1", match[0]), text)
    return re.sub(r"\n\s*", "\n", text)


def inline(text: str, prefix: str, alt: str) -> Markup:
    """An SVG file as an element of a page: own ids, no size of its own, a text for who sees none.

    matplotlib escapes text, and `svg` its tips; so a page takes it as it is.

    Args:
        text: What `svg` gave.
        prefix: Unique in the page; letters, digits and hyphens.
        alt: What the figure shows, in words.
    """
    body = text[text.index("<svg") :]
    head, rest = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    opening = f'<svg {box[0] if box else ""} role="img" aria-label="{escape(alt)}"'
    opening += f' font-family="{_FONTS}"'
    opening += ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    rest = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', rest)
    rest = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", rest)
    rest = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{prefix}-\1"', rest)
    rest = re.sub(r"<style[^>]*>.*?</style>", "", rest, flags=re.DOTALL)
    return Markup(opening + rest.strip())  # noqa: S704 - as said


def to_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV; numbers with all their digits, NaN empty."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(names)
    # Only NaN differs from itself. `csv` writes floats as `repr` does: every digit.
    writer.writerows(["" if value != value else value for value in row] for row in rows)  # noqa: PLR0124 - as said
    return sink.getvalue()


def limits(values: Float[np.ndarray, " n"], pad: float = 0.06) -> tuple[float, float]:
    """Axis limits around finite values, with some air."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    air = pad * (high - low or 1.0)
    return low - air, high + air
