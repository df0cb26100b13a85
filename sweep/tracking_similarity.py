"""Similarity rows of one trial as a small table for people and as a picture of its layers."""

import io
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ByLayer = dict[int, float]
MOST_NUMBERED_LINES = 40
"""Taller heatmaps carry no numbers in their cells."""


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
    for row in similarity.sort_by([("commit_id", "ascending")]).to_pylist():
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


def wide(similarity: pa.Table) -> list[dict[str, Any]]:
    """One line per measure, state and pair, one column per layer, four decimals."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("measure", "state", "source", "target")
    order = [(name, "ascending") for name in (*names, "layer", "commit_id")]
    layers = sorted(set(similarity["layer"].to_pylist()))
    for row in similarity.sort_by(order).to_pylist():
        key = tuple(row[name] for name in names)
        empty = dict.fromkeys((f"layer {layer}" for layer in layers), None)
        line = lines.setdefault(key, {name: row[name] for name in names} | {"n": row["n"]} | empty)
        value = row["value"]
        line[f"layer {row['layer']}"] = round(value, 4) if math.isfinite(value) else None
    return list(lines.values())


def table(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give lines the form in which MLflow's UI shows a table (pandas' `split`)."""
    columns = list(lines[0]) if lines else []
    return {"columns": columns, "data": [[line[name] for name in columns] for line in lines]}


def parquet(similarity: pa.Table) -> bytes:
    """The rows as they are, in a file of their own."""
    buffer = io.BytesIO()
    pq.write_table(similarity, buffer, compression="zstd")
    return buffer.getvalue()


def heatmaps(similarity: pa.Table, source: str, name: str) -> dict[str, Heatmap]:
    """Prepare one picture per measure and state: file name -> what to draw."""
    n = min(similarity["n"].to_pylist(), default=0)
    result = {}
    for (measure, state), languages in pairs(similarity, source).items():
        layers = tuple(sorted({layer for values in languages.values() for layer in values}))
        order = sorted(languages, key=lambda line: (-fmean(languages[line].values()), line))
        result[f"{measure}.{state}.png"] = Heatmap(
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


def draw(heatmap: Heatmap) -> bytes:
    """Draw a layer-by-language heatmap as PNG.

    Cividis reads the same with every kind of colour vision and in grey; the scale is 0 to 1 in
    every picture, so that two trials can be laid side by side. No global figure state.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    n_lines, n_layers = len(heatmap.lines), len(heatmap.layers)
    low = 0.0 if min(_finite_values(heatmap), default=0.0) >= 0 else -1.0
    has_numbers = n_lines <= MOST_NUMBERED_LINES
    height = 1.5 + (0.34 if has_numbers else 0.17) * n_lines
    figure = Figure(figsize=(2.2 + 0.52 * n_layers, height), dpi=110)
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("#d9d9d9")
    image = axes.imshow(
        heatmap.values, cmap="cividis", norm=Normalize(low, 1.0), aspect="auto"
    )
    axes.set_xticks(range(n_layers), [str(layer) for layer in heatmap.layers])
    axes.set_yticks(range(n_lines), heatmap.lines)
    axes.set_xlabel("layer (0 = embeddings)")
    axes.set_title(f"{heatmap.title}\n{heatmap.n:,} sentence pairs", fontsize=10, loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for y, line in enumerate(heatmap.values if has_numbers else ()):
        for x, value in enumerate(line):
            text = f"{value:.2f}" if math.isfinite(value) else "-"
            is_dark = math.isfinite(value) and value < (low + 1) / 2
            axes.text(
                x, y, text, ha="center", va="center", fontsize=7.5,
                color="white" if is_dark else "black",
            )
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label(heatmap.measure)
    bar.outline.set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _finite_values(heatmap: Heatmap) -> list[float]:
    return [value for line in heatmap.values for value in line if math.isfinite(value)]
