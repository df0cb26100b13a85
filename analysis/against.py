"""Published numbers beside ours, cell by cell, in the shape of the printed tables; pure.

Doubtful printed numbers stay in their cells, marked.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.ours import Found, Study, find
from analysis.printed import rounded
from analysis.reference.published import Printed, Published
from analysis.reference.shapes import Shape, Spot


@dataclass(frozen=True, slots=True)
class Pair:
    """One cell, both sides.

    Attributes:
        spot: Where it stands on both.
        ours: None where the study has nothing of the kind.
        printed: None where the paper, or its extraction, has no number.
        column: Head of its column.
    """

    spot: Spot
    ours: Found | None
    printed: Printed | None
    column: str

    @property
    def value(self) -> float:
        """Our number; NaN where there is none."""
        return math.nan if self.ours is None else self.ours.number.value

    @property
    def difference(self) -> float:
        """Ours less published, unrounded; NaN unless both are there."""
        return math.nan if self.printed is None else self.value - self.printed.value

    @property
    def is_suspect(self) -> bool:
        """Whether the published number is marked and counts nowhere."""
        return self.printed is not None and self.printed.is_suspect

    @property
    def is_like_for_like(self) -> bool:
        """Whether ours is what the paper prints: no mean over another number of languages."""
        return self.ours is not None and not self.ours.number.reason

    @property
    def is_same_in_print(self) -> bool:
        """Whether ours, rounded as the paper rounds, is the published number."""
        if self.printed is None or math.isnan(self.value):
            return False
        value, printed = self.value, self.printed
        if printed.unit not in {"percent", "delta_points"}:
            return math.isclose(value, printed.value, abs_tol=0.5 * 10.0**-printed.digits)
        return str(abs(rounded(value, printed.digits))) == printed.text.removeprefix("-") and (
            value * printed.value >= 0 or not rounded(value, printed.digits)
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table, both sides."""

    head: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a table."""

    head: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """A printed table with our numbers in it.

    Attributes:
        shape: The table.
        name: Stem of its files.
        encoder: Whose numbers ours are.
        parts: Its sections; those of which we have nothing are left out.
    """

    shape: Shape
    name: str
    encoder: str
    parts: tuple[Part, ...]

    @property
    def pairs(self) -> Iterator[Pair]:
        """All cells."""
        return (pair for part in self.parts for line in part.lines for pair in line.pairs)


def beside(study: Study, shapes: Sequence[Shape], published: Published) -> tuple[Beside, ...]:
    """Fill the printed tables with our numbers.

    Args:
        study: Our side.
        shapes: Tables of one paper.
        published: Its numbers.

    Returns:
        The tables that we have a number for, once for each encoder and setting; of their rows
        those whose setting the study has.
    """
    filled = []
    for shape in shapes:
        if not study.has(shape.needs):
            continue
        n = 0
        for variant in study.variants():
            parts = tuple(_parts(study, shape, published, variant))
            if any(not math.isnan(p.value) for part in parts for e in part.lines for p in e.pairs):
                n += 1
                name = shape.name if n == 1 else f"{shape.name}--{n}"
                filled.append(Beside(shape, name, ", ".join(filter(None, variant)), parts))
    return tuple(filled)


def _parts(
    study: Study, shape: Shape, published: Published, variant: tuple[str, str]
) -> Iterator[Part]:
    for section in shape.sections:
        lines = []
        for row in section.rows:
            pairs = tuple(
                Pair(spot, find(study, spot.query, variant), published.cells.get(spot.printed), c)
                for spot, c in zip(row.spots, shape.columns, strict=True)
            )
            if any(pair.ours is not None for pair in pairs):
                lines.append(Line(row.head, pairs))
        if lines:
            yield Part(section.head, tuple(lines))
