"""Similarity rows of one trial as a small table for people and as a picture of its layers."""

import io
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from PIL import Image, ImageFont

ByLayer = dict[int, float]


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Lines are languages (most similar first), columns are states 0 to L.

    Attributes:
        title: What is shown, for people.
        measure: Name of the measure, for the scale's label.
        lines: Label of each line.
        layers: State index of each column; 0 is the embeddings.
        values: One list a line; NaN where the measure is undefined.
        n: Sentence pairs, the least over all values.
    """

    title: str
    measure: str
    lines: tuple[str, ...]
    layers: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    n: int


def pairs(similarity: pa.Table, source: str) -> dict[tuple[str, str], dict[str, ByLayer]]:
    """Sort values into (measure, state) -> other language -> layer -> value.

    Pairs with `source` count; where none of them has it, all do, named `en-fr`. A language with
    itself never counts, undefined values are left out.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(similarity.to_pylist(), key=itemgetter("commit_id")):
        if row["source"] != row["target"] and math.isfinite(row["value"]):
            groups[row["measure"], row["state"]].append(row)
    result: dict[tuple[str, str], dict[str, ByLayer]] = {}
    for key in sorted(groups):
        rows = groups[key]
        has_source = any(source in (row["source"], row["target"]) for row in rows)
        languages: dict[str, ByLayer] = defaultdict(dict)
        for row in rows:
            if has_source and source not in (row["source"], row["target"]):
                continue
            other = row["source"] if row["target"] == source else row["target"]
            name = other if has_source else f"{row['source']}-{row['target']}"
            languages[name][row["layer"]] = row["value"]
        result[key] = {name: languages[name] for name in sorted(languages)}
    return result


def tables(similarity: pa.Table, source: str) -> dict[str, dict[str, Any]]:
    """Lay out one table per measure and state, as MLflow's UI shows tables (pandas' `split`).

    A line is a layer, a column a language (most similar first, four decimals), the mean in front:
    MLflow's columns are wide, and the first ones must be those that say most.

    Returns:
        Name (`linear-cka.fine-tuned`) to columns and data.
    """
    result = {}
    for (measure, state), languages in pairs(similarity, source).items():
        order = _by_mean(languages)
        data = []
        for layer in _layers(languages):
            values = [languages[name].get(layer) for name in order]
            mean = fmean(value for value in values if value is not None)
            cells = [None if value is None else round(value, 4) for value in (mean, *values)]
            data.append([layer, *cells])
        result[f"{measure}.{state}"] = {"columns": ["layer", "mean", *order], "data": data}
    return result


def parquet(similarity: pa.Table) -> bytes:
    """The rows as they are, in a file of their own."""
    buffer = io.BytesIO()
    pq.write_table(similarity, buffer, compression="zstd")
    return buffer.getvalue()


def heatmaps(similarity: pa.Table, source: str, name: str) -> dict[str, Heatmap]:
    """Prepare one picture per measure and state: name -> what to draw."""
    n = min(similarity["n"].to_pylist(), default=0)
    result = {}
    for (measure, state), languages in pairs(similarity, source).items():
        layers, order = _layers(languages), _by_mean(languages)
        result[f"{measure}.{state}"] = Heatmap(
            title=f"{name}: {measure} to {source}, {state}" if source else f"{name}: {measure}",
            measure=measure,
            lines=tuple(order),
            layers=layers,
            values=tuple(
                tuple(languages[line].get(layer, math.nan) for layer in layers) for line in order
            ),
            n=n,
        )
    return result


def _layers(languages: Mapping[str, ByLayer]) -> tuple[int, ...]:
    return tuple(sorted({layer for values in languages.values() for layer in values}))


def _by_mean(languages: Mapping[str, ByLayer]) -> list[str]:
    return sorted(languages, key=lambda name: (-fmean(languages[name].values()), name))


_CELL = (48, 30)
_TOP, _BOTTOM, _SCALE, _PAD = 62, 58, 120, 16
_EDGE = 10  # room for the numbers at the ends of the scale
_INK, _UNDEFINED = "#1a1a1a", (217, 217, 217)


def draw(heatmap: Heatmap) -> bytes:
    """Draw a layer-by-language heatmap as PNG.

    Cividis reads the same with every kind of colour vision and in grey; the scale is 0 to 1 (-1
    to 1 where a value is negative) in every picture, so that two trials can be laid side by side.
    Drawn with Pillow and matplotlib's colours and font: matplotlib's own canvas takes ten times
    as long (180 ms of the driver's time a trial), most of it for the numbers.
    """
    from PIL import Image, ImageDraw

    low = 0.0 if min(_finite_values(heatmap), default=0.0) >= 0 else -1.0
    left = 2 * _PAD + int(max(_font(17).getlength(line) for line in heatmap.lines))
    right = left + _CELL[0] * len(heatmap.layers)
    bottom = _TOP + _CELL[1] * len(heatmap.lines)
    title_width = int(_font(17).getlength(heatmap.title)) + 2 * _PAD
    size = (max(right + _SCALE, title_width), bottom + _BOTTOM)
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    pen.text((_PAD, 10), heatmap.title, _INK, _font(17))
    pen.text((_PAD, 34), f"{heatmap.n:,} sentence pairs", "#595959", _font(14))
    for y, (name, values) in enumerate(zip(heatmap.lines, heatmap.values, strict=True)):
        top = _TOP + y * _CELL[1]
        pen.text((left - 10, top + _CELL[1] // 2), name, _INK, _font(17), anchor="rm")
        for x, value in enumerate(values):
            image.paste(_cell(_code(value, low), f"{value:.2f}"), (left + x * _CELL[0], top))
    for x, layer in enumerate(heatmap.layers):
        middle = left + x * _CELL[0] + _CELL[0] // 2
        pen.text((middle, bottom + 16), str(layer), _INK, _font(17), anchor="mm")
    middle = (left + right) // 2
    pen.text((middle, bottom + 40), "layer (0 = embeddings)", _INK, _font(16), anchor="mm")
    image.paste(_scale(bottom - _TOP, low), (right + 20, _TOP - _EDGE))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # half the time, and a fifteenth larger
    return buffer.getvalue()


@lru_cache(1024)
def _cell(code: int | None, text: str) -> "Image.Image":
    """One value on its colour; the next trial's are much the same, and writing takes longest.

    Args:
        code: Place of its colour on the scale, 0 to 255; None where it is undefined.
        text: The value.
    """
    from PIL import Image, ImageDraw

    colour = _UNDEFINED if code is None else _palette()[code]
    image = Image.new("RGB", _CELL, colour)
    ink = "black" if _luminance(colour) > _READABLE else "white"
    middle = (_CELL[0] // 2, _CELL[1] // 2)
    pen = ImageDraw.Draw(image)
    pen.text(middle, "-" if code is None else text, ink, _font(15), anchor="mm")
    return image


@lru_cache(64)
def _scale(height: int, low: float) -> "Image.Image":
    """The colours of a scale beside their values; all trials of a study share it."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (_SCALE - 20, height + 2 * _EDGE), "white")
    pen = ImageDraw.Draw(image)
    for y in range(height):
        value = low + (1 - low) * (height - 1 - y) / max(height - 1, 1)
        pen.line((0, y + _EDGE, 20, y + _EDGE), _palette()[_code(value, low) or 0])
    for place, value in ((0, 1.0), (height / 2, (1 + low) / 2), (height, low)):
        pen.text((28, place + _EDGE), f"{value:g}", _INK, _font(15), anchor="lm")
    return image


_READABLE = 0.18
"""Relative luminance at which black and white ink have equal contrast (WCAG 2)."""


def _luminance(colour: tuple[int, int, int]) -> float:
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]  # noqa: PLR2004 - sRGB
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@cache
def _palette() -> list[tuple[int, int, int]]:
    from matplotlib import colormaps

    rgb = colormaps["cividis"](range(256), bytes=True)[:, :3]
    return [(int(r), int(g), int(b)) for r, g, b in rgb]


def _code(value: float, low: float) -> int | None:
    """Place of a value's colour on the scale from `low` to 1; None where it is undefined."""
    if not math.isfinite(value):
        return None
    return min(max(round(255 * (value - low) / (1 - low)), 0), 255)


@cache
def _font(size: int) -> "ImageFont.FreeTypeFont":
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", size)


def _finite_values(heatmap: Heatmap) -> list[float]:
    return [value for line in heatmap.values for value in line if math.isfinite(value)]
