"""Coloured cells with text in them, as one artist: hundreds of matplotlib texts take seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

Colour = tuple[float, float, float, float]
_Box = tuple[float, float, float, float]  # left, top edge, width, (signed) height; pixels

SIZE = 6.5
"""Points of the text."""

_UNIT = Path.unit_rectangle()


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the unit square right of and below (column, row).

    Attributes:
        row: From the top.
        column: From the left.
        colour: Of its ground.
        text: Written in the middle; empty for none.
        ink: Colour of the text.
        is_best: Whether it is framed, its text bold.
        name: Its id in an SVG file.
    """

    row: int
    column: int
    colour: Colour
    text: str
    ink: str
    is_best: bool
    name: str


class Cells(Artist):
    """Cells of a heatmap. They take no part in the layout, as they lie inside the axes.

    In a PNG file text is drawn as outlines, which are made once a string: three times as fast. In
    an SVG file it stays text, that browsers can find and copy.
    """

    def __init__(self, axes: Axes, cells: Sequence[Cell], frame: str) -> None:
        super().__init__()
        self._cells = tuple(cells)
        self._frame = frame
        self._anchor = Text(ha="center")  # an SVG file centres text by this one's alignment
        self.set_in_layout(False)
        axes.add_artist(self)

    def draw(self, renderer: RendererBase) -> None:
        """Draw each cell: its ground, its text, its frame."""
        axes = self.axes
        assert axes is not None  # noqa: S101 - it was added to axes when it was made
        (x0, y0), (x1, y1) = axes.transData.transform([(0, 0), (1, 1)])
        wide, high = float(x1 - x0), float(y1 - y0)
        for cell in self._cells:
            left, top = float(x0 + cell.column * wide), float(y0 + cell.row * high)
            renderer.open_group("cell", gid=cell.name)
            _draw(renderer, _UNIT, _placed((left, top, wide, high)), "white", 0.6, cell.colour)
            renderer.close_group("cell")
            if cell.text:
                self._write(renderer, cell, left + 0.5 * wide, top + 0.5 * high)
            if cell.is_best:
                inner = left + 0.06 * wide, top + 0.06 * high, 0.88 * wide, 0.88 * high
                _draw(renderer, _UNIT, _placed(inner), self._frame, 1.4)
        self.stale = False

    def _write(self, renderer: RendererBase, cell: Cell, x: float, y: float) -> None:
        outline, low, high, middle = _outline(cell.text, is_bold=cell.is_best)
        scale = _pixels(renderer, 1.0)
        base = y - scale * (low + high) / 2
        if isinstance(renderer, RendererAgg):
            place = Affine2D().scale(scale).translate(x - scale * middle, base)
            _draw(renderer, outline, place, cell.ink, 0.0, cell.ink)
            return
        self._anchor.set_position((x, base))
        at = x - scale * middle, renderer.get_canvas_width_height()[1] - base
        pen = _pen(renderer, cell.ink)
        renderer.draw_text(pen, *at, cell.text, _font(is_bold=cell.is_best), 0, mtext=self._anchor)
        pen.restore()


@lru_cache(maxsize=4096)
def _outline(text: str, *, is_bold: bool) -> tuple[Path, float, float, float]:
    """Outline of a text, where a digit begins and ends in height, its middle in width; points."""
    outline = TextPath((0, 0), text, size=SIZE, prop=_font(is_bold=is_bold))
    digit = TextPath((0, 0), "0", size=SIZE, prop=_font(is_bold=is_bold)).get_extents()
    middle = outline.get_extents()
    return outline, float(digit.y0), float(digit.y1), float(middle.x0 + middle.x1) / 2


@lru_cache
def _font(*, is_bold: bool) -> FontProperties:
    return FontProperties(size=SIZE, weight="bold" if is_bold else "normal")


def _placed(box: _Box) -> Affine2D:
    left, top, wide, high = box
    return Affine2D(np.array([[wide, 0.0, left], [0.0, high, top], [0.0, 0.0, 1.0]]))


def _pixels(renderer: RendererBase, points: float) -> float:
    return float(np.asarray(renderer.points_to_pixels(points)))


def _pen(renderer: RendererBase, colour: str, width: float = 1.0) -> GraphicsContextBase:
    pen = renderer.new_gc()
    pen.set_foreground(colour)
    pen.set_linewidth(_pixels(renderer, width))
    return pen


def _draw(  # noqa: PLR0917 - a path, where, and its two colours
    renderer: RendererBase,
    path: Path,
    place: Affine2D,
    line: str,
    width: float,
    ground: Colour | str | None = None,
) -> None:
    pen = _pen(renderer, line, width)
    renderer.draw_path(pen, path, place, to_rgba(ground) if ground is not None else None)
    pen.restore()
