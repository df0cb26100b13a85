"""Published numbers: read from the package's CSV files, checked, each with its doubts."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from analysis.reference.doubts import Doubt, RowMeans, doubts_of, twice

HERE = Path(__file__).parent
PAPERS: Mapping[str, str] = {
    "first-align": "Muller et al. (2021), First Align, then Predict",
    "beto": "Wu and Dredze (2019), Beto, Bentz, Becas",
    "dlfa": "Chen and Guo (2022), Feature Aggregation (DLFA)",
}
"""What `--against` may name: each has a CSV file of numbers and a TOML file of shapes."""

COLUMNS = (
    "document", "table", "task", "system", "source", "target", "eval_set", "ablation", "metric",
    "value", "unit", "note",
)  # fmt: skip
ADDRESS = COLUMNS[1:9]
"""What names a printed number within its document."""

UNITS: Mapping[str, float] = {
    **dict.fromkeys(("percent", "delta_points", "points"), 0.01),
    **dict.fromkeys(("rho", "cosine", "count", "rate", "minutes", "layer", "distance"), 1.0),
    **dict.fromkeys(("easy=1", "intermediate=2", "hard=3"), 1.0),
}
"""Unit -> factor to what we store: fractions, else the number itself."""


class PublishedError(ValueError):
    """A file of published numbers is not as its columns promise; says file and line."""


class UnknownPaper(LookupError):  # noqa: N818 - as registry.UnknownName: the name a researcher reads
    """No paper of that name; the message has the closest one."""


Address = tuple[str, ...]
"""Values of `ADDRESS`."""


@dataclass(frozen=True, slots=True)
class Printed:
    """One printed number.

    Attributes:
        address: Where it stands.
        text: As printed, with an ASCII minus.
        value: Fraction where the unit is percent or points; else the number itself.
        unit: A key of `UNITS`.
        doubts: What is to be known of it.
    """

    address: Address
    text: str
    value: float
    unit: str
    doubts: tuple[Doubt, ...] = ()

    @property
    def is_delta(self) -> bool:
        """Whether it is a difference to the reference."""
        return self.unit == "delta_points"

    @property
    def digits(self) -> int:
        """Decimals it is printed with."""
        return len(self.text.partition(".")[2])

    @property
    def is_suspect(self) -> bool:
        """Whether it counts in no agreement."""
        return any(doubt.leaves_out == "all" for doubt in self.doubts)

    @property
    def is_relative(self) -> bool:
        """Whether only differences to it are to be compared, not its value."""
        return any(doubt.leaves_out == "value" for doubt in self.doubts)


@dataclass(frozen=True, slots=True)
class Published:
    """All numbers of one document.

    Attributes:
        name: Key of `PAPERS`, or `talk`.
        rows: As the file has them, all text.
        cells: Address -> number.
    """

    name: str
    rows: pa.Table
    cells: Mapping[Address, Printed]

    def largest_sd(self, task: str) -> float:
        """Largest printed standard deviation over seeds of a task, a fraction; 0 if none is."""
        found = (
            printed.value
            for address, printed in self.cells.items()
            if address[ADDRESS.index("metric")] == "std_over_seeds_max"
            and address[ADDRESS.index("task")] == task
        )
        return max(found, default=0.0)


def check_paper(name: str) -> None:
    """Refuse a name that `PAPERS` does not hold.

    Raises:
        UnknownPaper: with the closest name.
    """
    if name not in PAPERS:
        close = difflib.get_close_matches(name, PAPERS, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise UnknownPaper(f"unknown paper '{name}'.{hint} Known: {', '.join(PAPERS)}.")


@cache
def published(name: str) -> Published:
    """Read the numbers of a paper.

    Raises:
        UnknownPaper: no such paper.
        PublishedError: its file is damaged.
    """
    check_paper(name)
    return read_published(HERE / f"{name}.csv", row_means(HERE / "row_means.csv"))


def read_published(path: Path, means: RowMeans) -> Published:
    """Read and check one file of published numbers.

    Raises:
        PublishedError: other columns, another document, an unknown unit, no number, or a number
            that stands there twice.
    """
    table = _read(path, COLUMNS)
    cells: dict[Address, Printed] = {}
    for line, row in enumerate(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True), 2):
        document, *address, text, unit, note = row
        where, key = f"{path.name}:{line}", tuple(address)
        if document != path.stem:
            raise PublishedError(f"{where}: document '{document}'; the file holds {path.stem}.")
        if unit not in UNITS:
            raise PublishedError(f"{where}: unit '{unit}'. Known: {', '.join(UNITS)}.")
        if key in cells:
            raise PublishedError(f"{where}: {' '.join(filter(None, key))} stands there twice.")
        cells[key] = Printed(
            key, text, _number(text, unit, where), unit, doubts_of(document, key, note, means)
        )
    for key, doubt in twice(cells):
        cell = cells[key]
        cells[key] = Printed(key, cell.text, cell.value, cell.unit, (*cell.doubts, doubt))
    return Published(path.stem, table, cells)


def row_means(path: Path) -> RowMeans:
    """(table, task, source, ablation) of a printed mean -> (cells missing, verdict).

    Raises:
        PublishedError: other columns.
    """
    names = ("table", "task", "source", "ablation", "printed_X_mean", "mean_of_16_printed_targets",
             "missing_cells", "printed_minus_mean", "verdict")  # fmt: skip
    rows = _read(path, names).to_pylist()
    keys = ("table", "task", "source", "ablation")
    return {
        tuple(row[k] for k in keys): (int(row["missing_cells"]), row["verdict"]) for row in rows
    }


def _read(path: Path, names: Sequence[str]) -> pa.Table:
    types = dict.fromkeys(names, pa.string())
    options = pacsv.ConvertOptions(column_types=types, strings_can_be_null=False)
    try:
        table = pacsv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowException) as error:
        raise PublishedError(f"{path.name}: {error}") from error
    if tuple(table.column_names) != tuple(names):
        raise PublishedError(
            f"{path.name}: columns {', '.join(table.column_names)}; expected {', '.join(names)}."
        )
    return table


def _number(text: str, unit: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise PublishedError(f"{where}: value '{text}' is no number.") from None
    # As decimal text, so that 53.23 percent is exactly the double next to 0.5323.
    return float(f"{text}e-2") if UNITS[unit] != 1.0 else value
