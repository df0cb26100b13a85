"""A heatmap of languages by layers, or of languages by ablations, with its numbers written in."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from analysis import labels, printed
from analysis.evidence import Evidence
from analysis.figures import style
from analysis.figures.cells import Cell, Cells
from analysis.figures.style import Drawing
from analysis.profiles import Profile

_DARK = 0.55
"""Below this lightness, text on a colour is white."""

_WIDE, _NARROW = 0.29, 0.2
"""Inches of a column that holds a difference, or a score."""

_NAMES, _LETTER = 1.4, 0.08
"""Inches of the names of rows, and of one letter of a column's name."""

_BESIDE = 3.5
"""Points between the name of a row and its first cell."""

_REACH = 0.15
"""Differences beyond 15 points share one colour, so that smaller ones can be told apart."""


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A figure of coloured cells.

    Attributes:
        title: One line.
        rows: Names of the rows.
        columns: Names of the columns.
        x_label: What the columns are.
        values: Fractions; NaN leaves a cell empty.
        is_delta: Whether values are differences: coloured around 0, printed in points.
        shade: Differences to colour by, in place of the values.
        is_best: Cells to mark.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    x_label: str
    values: Float[np.ndarray, "r c"]
    is_delta: bool = False
    shade: Float[np.ndarray, "r c"] | None = None
    is_best: Bool[np.ndarray, "r c"] | None = None

    def csv(self) -> str:
        """One row a cell."""
        rows = [
            (row, column, self.values[i, j])
            for i, row in enumerate(self.rows)
            for j, column in enumerate(self.columns)
        ]
        return style.to_csv(("row", "column", "value"), rows)


def similarity_data(profile: Profile, source: str) -> Heatmap | None:
    """Similarity of each language to the source in each state of the reference models.

    Returns:
        None when the reference has no similarities.
    """
    reference = profile.lineup.reference
    if reference is None or np.isnan(profile.values[reference]).all():
        return None
    return Heatmap(
        f"{_capital(labels.measure(profile.measure))} with {labels.language(source)}, x 100",
        tuple(labels.language(target) for target in profile.targets),
        tuple(str(layer) for layer in profile.layers),
        "layer (0 = embeddings)",
        profile.mean()[reference],
    )


def delta_data(evidence: Evidence) -> Heatmap | None:
    """Difference to the reference of each language under each ablation.

    Returns:
        None without a reference or without any other ablation.
    """
    lineup = evidence.block.lineup
    ablated = [a for a in range(len(lineup.ablations)) if a != lineup.reference]
    if evidence.delta is None or not ablated:
        return None
    return Heatmap(
        "Difference to REF in points",
        tuple(labels.language(target) for target in evidence.block.targets),
        tuple(labels.ablation_column(lineup.ablations[a]) for a in ablated),
        "ablation",
        evidence.delta.mean[ablated].T,
        is_delta=True,
    )


def draw_heatmap(data: Heatmap) -> Drawing:
    """Cells in colour, each with its number."""
    shade = data.values if data.shade is None else data.shade
    finite = shade[np.isfinite(shade)]
    if data.is_delta or data.shade is not None:
        reach = min(max([0.05, *np.abs(finite).tolist()]), _REACH)
        colours, norm = mpl.colormaps["PuOr"], mpl.colors.Normalize(-reach, reach)
    else:
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        colours, norm = mpl.colormaps["cividis"], mpl.colors.Normalize(low, max(high, low + 0.01))
    tips: dict[str, str] = {}
    cells: list[Cell] = []
    n_rows, n_columns = data.values.shape
    width = _WIDE if data.is_delta else _NARROW
    size = (max(style.SIZE[0], _NAMES + width * n_columns), max(style.SIZE[1], 0.9 + 0.2 * n_rows))
    with style.canvas(size) as (figure, axes):
        has_room = n_columns <= 16  # noqa: PLR2004 - more have no room for numbers
        grounds = np.where(np.isfinite(shade)[..., None], colours(norm(shade)), 1.0)
        is_dark = grounds[..., :3] @ (0.299, 0.587, 0.114) < _DARK
        for (i, j), value in np.ndenumerate(data.values):
            is_best = data.is_best is not None and bool(data.is_best[i, j])
            text = _text(value, is_delta=data.is_delta, digits=int(data.shade is not None))
            name = f"tip-{i}-{j}"
            tips[name] = f"{data.rows[i]}, {data.x_label.split()[0]} {data.columns[j]}: {text}"
            ink = "white" if is_dark[i, j] else style.INK
            ground = tuple(grounds[i, j].tolist())
            cells.append(Cell(i, j, ground, text if has_room else "", ink, is_best, name))
        Cells(axes, cells, style.INK)
        axes.set_xlim(0, n_columns)
        axes.set_ylim(n_rows, 0)
        axes.grid(visible=False)
        axes.set_xticks(np.arange(n_columns) + 0.5, data.columns)
        axes.set_yticks([])
        _name_rows(axes, data.rows)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel(data.x_label)
        if max(map(len, data.columns), default=0) * _LETTER > (size[0] - _NAMES) / n_columns:
            for label in axes.get_xticklabels():
                label.set(rotation=45, ha="right", rotation_mode="anchor")
    return Drawing(figure, tips)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names left of the rows. A tick would be three lines and two texts for each of them."""
    assert axes.figure is not None  # noqa: S101 - `style.canvas` made it
    beside = ScaledTranslation(-_BESIDE / 72, 0, axes.figure.dpi_scale_trans)
    for i, name in enumerate(names):
        axes.text(
            0, i + 0.5, name, transform=axes.transData + beside, ha="right", va="center_baseline"
        )


def _text(value: float, *, is_delta: bool, digits: int = 0) -> str:
    if not np.isfinite(value):
        return printed.DASH
    return printed.typeset(printed.delta(value, 1)) if is_delta else printed.score(value, digits)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
