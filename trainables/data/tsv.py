"""Tables of texts -> examples: sentence pairs, topics, languages.

A layout says whether there is a header, what each column means and whether a field may stand in
quotation marks. Getting the last wrong loses examples in silence: KorNLI has sentences that begin
with a quotation mark and do not end with one (as quoted fields they would swallow what follows);
PAWS-X, SIB-200 and MasakhaNEWS double the marks inside a quoted field.

    xnli         premise, hypothesis, label              no header            as it stands
    kornli       sentence1, sentence2, gold_label        header               as it stands
    americasnli  id, language, premise, hypothesis, label   header            as it stands
    pawsx        sentence1, sentence2, label             no header            quoted
    pawsx-final  id, sentence1, sentence2, label         header               quoted
    sib200       index_id, category, text                header               quoted
    masakhanews  category, headline, text, url           header               quoted
    mldoc        label, text                             no header            as it stands
    wili         x_SPLIT.txt: one text a line; y_SPLIT.txt beside it: one label a line
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path

from trainables.data.example import Example
from trainables.data.lines import Line, check_limit, read_lines
from trainables.data.sentence import DataError

NLI_LABELS = ("contradiction", "entailment", "neutral")
_ALIASES = {"contradictory": "contradiction"}  # XTREME's translations of MultiNLI

_SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026\u061f])\s+|(?<=[.!?\u2026\u061f][\"'\u201d\u00bb)\]])\s+"
    r"|(?<=[\u3002\uff01\uff1f])(?=\S)"
)
"""Where a sentence ends: a stand-in for NLTK's trained splitter, and blind to abbreviations."""

_LONGEST = 1 << 24
"""Characters of the longest field; the csv module refuses more than 131,072 by itself."""

Row = tuple[int, list[str]]
"""1-based line on which a record starts, and its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a table is written.

    Attributes:
        columns: Name of each column; those of a header, if there is one.
        has_header: Whether the first line holds `columns`.
        is_quoted: Whether a field may stand in quotation marks, as in CSV.
        text: Columns that make up the text, joined by a line feed.
        pair: Column of the second text; empty for none.
        label: Column of the class.
        labels: Classes that there are; empty where any is possible.
        may_lack_label: Whether a whole file may leave out its last column, the class.
    """

    columns: tuple[str, ...]
    has_header: bool
    is_quoted: bool
    text: tuple[str, ...]
    pair: str = ""
    label: str = "label"
    labels: tuple[str, ...] = ()
    may_lack_label: bool = False


XNLI = Layout(
    columns=("premise", "hypothesis", "label"),
    has_header=False,
    is_quoted=False,
    text=("premise",),
    pair="hypothesis",
    labels=NLI_LABELS,
    may_lack_label=True,
)
KORNLI = Layout(
    columns=("sentence1", "sentence2", "gold_label"),
    has_header=True,
    is_quoted=False,
    text=("sentence1",),
    pair="sentence2",
    label="gold_label",
    labels=NLI_LABELS,
)
AMERICASNLI = Layout(
    columns=("id", "language", "premise", "hypothesis", "label"),
    has_header=True,
    is_quoted=False,
    text=("premise",),
    pair="hypothesis",
    labels=NLI_LABELS,
)
PAWSX = Layout(
    columns=("sentence1", "sentence2", "label"),
    has_header=False,
    is_quoted=True,
    text=("sentence1",),
    pair="sentence2",
    labels=("0", "1"),
    may_lack_label=True,
)
PAWSX_FINAL = Layout(
    columns=("id", "sentence1", "sentence2", "label"),
    has_header=True,
    is_quoted=True,
    text=("sentence1",),
    pair="sentence2",
    labels=("0", "1"),
)
SIB200 = Layout(
    columns=("index_id", "category", "text"),
    has_header=True,
    is_quoted=True,
    text=("text",),
    label="category",
)
MASAKHANEWS = Layout(
    columns=("category", "headline", "text", "url"),
    has_header=True,
    is_quoted=True,
    text=("headline", "text"),
    label="category",
)
MLDOC = Layout(
    columns=("label", "text"),
    has_header=False,
    is_quoted=False,
    text=("text",),
    labels=("CCAT", "ECAT", "GCAT", "MCAT"),
)


def read_xnli(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read XNLI as XTREME lays it out; test files may have no labels."""
    return read_table(path, XNLI, limit)


def read_kornli(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read KorNLI."""
    return read_table(path, KORNLI, limit)


def read_americasnli(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read AmericasNLI."""
    return read_table(path, AMERICASNLI, limit)


def read_pawsx(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read PAWS-X as XTREME lays it out; test files may have no labels."""
    return read_table(path, PAWSX, limit)


def read_pawsx_final(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read PAWS-X as its authors lay it out."""
    return read_table(path, PAWSX_FINAL, limit)


def read_sib200(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read SIB-200."""
    return read_table(path, SIB200, limit)


def read_masakhanews(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read MasakhaNEWS; a headline and its article are one text."""
    return read_table(path, MASAKHANEWS, limit)


def read_mldoc(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read MLDoc; of each document the first two sentences, as a pair (PROTOCOLS 1.6)."""
    examples = read_table(path, MLDOC, limit)
    return tuple(_first_two_sentences(example) for example in examples)


def _first_two_sentences(example: Example) -> Example:
    first, second, *_ = [part.strip() for part in _SENTENCE_END.split(example.text, 2)] + [""]
    return replace(example, text=first, pair=second)


def read_wili(path: str, limit: int | None = None) -> tuple[Example, ...]:
    """Read `x_SPLIT.txt`, one text a line, with its labels in `y_SPLIT.txt` beside it.

    Raises:
        DataError: a file cannot be read or is empty, the two differ in length, or a line is empty.
    """
    check_limit(limit)
    file = Path(path)
    if not file.name.startswith("x_"):
        raise DataError(path, None, "not a file of texts", "Name the file x_train.txt or the like.")
    labels = str(file.with_name(f"y_{file.name[2:]}"))
    examples = []
    pairs = zip_longest(read_lines(path), read_lines(labels), fillvalue=(0, ""))
    for (line, text), (label_line, label) in islice(pairs, limit):
        if line != label_line:
            short, long = (path, labels) if line == 0 else (labels, path)
            what = f"no line {line or label_line}, but {Path(long).name} has one"
            raise DataError(short, None, what, "Fetch both files again; one may be cut short.")
        for where, value in ((path, text), (labels, label)):
            if not value.strip():
                raise DataError(where, line, "an empty line", "Take it out of both files.")
        examples.append(Example(text=text, label=label, language=label, line=line))
    return _whole(examples, path)


def read_table(path: str, layout: Layout, limit: int | None = None) -> tuple[Example, ...]:
    """Read a table of one layout.

    Args:
        path: The file.
        layout: How it is written.
        limit: Stop after so many examples.

    Raises:
        DataError: the file cannot be read, is empty, has another header or number of columns, a
            class that there is not, an empty text, or a quotation mark that is not closed.
        ValueError: `limit` is less than 1.
    """
    check_limit(limit)
    lines = read_lines(path)
    rows = _quoted(lines, path) if layout.is_quoted else _plain(lines)
    if layout.has_header:
        _check_header(next(rows, (1, [])), layout, path)
    columns: tuple[str, ...] = ()
    examples = []
    for line, cells in islice(rows, limit):
        if not columns:  # the first example tells whether the file has classes
            is_short = layout.may_lack_label and len(cells) == len(layout.columns) - 1
            columns = layout.columns[:-1] if is_short else layout.columns
        if len(cells) != len(columns):
            n = len(cells)
            what = f"{n} column{'s' * (n != 1)} instead of {len(columns)}"
            mend = f"This layout has {' TAB '.join(columns)}, and no tab inside a text."
            raise DataError(path, line, what, mend)
        examples.append(_example(line, dict(zip(columns, cells, strict=True)), layout, path))
    return _whole(examples, path)


def _whole(examples: Sequence[Example], path: str) -> tuple[Example, ...]:
    if not examples:
        raise DataError(path, None, "the file holds no example", "Fetch it again.")
    return tuple(examples)


def _plain(lines: Iterable[Line]) -> Iterator[Row]:
    """Cut lines at tabs; quotation marks are characters like others."""
    return ((number, text.split("\t")) for number, text in lines if text)


def _quoted(lines: Iterable[Line], path: str) -> Iterator[Row]:
    """Cut lines at tabs outside quotation marks; a quoted field may run over several lines."""
    csv.field_size_limit(_LONGEST)
    start, last = 1, 0

    def texts() -> Iterator[str]:
        nonlocal last
        for number, text in lines:
            last = number
            yield f"{text}\n"

    reader = csv.reader(texts(), delimiter="\t", strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"a field begins with a quotation mark and does not end with one ({error})"
            mend = "Close it and double the marks inside, or use a layout without quotation."
            raise DataError(path, start, what, mend) from error
        if cells:
            yield start, cells
        start = last + 1


def _check_header(first: Row, layout: Layout, path: str) -> None:
    line, cells = first
    if tuple(cells) != layout.columns:
        what = f"the header is {' TAB '.join(cells)[:80] or 'missing'}"
        mend = f"This layout begins with {' TAB '.join(layout.columns)}."
        raise DataError(path, line, what, mend)


def _example(line: int, cells: dict[str, str], layout: Layout, path: str) -> Example:
    for name in filter(None, (*layout.text, layout.pair, layout.label)):
        if name in cells and not cells[name].strip():
            raise DataError(path, line, f"column {name} is empty", "Take the example out.")
    label = cells.get(layout.label, "")
    label = _ALIASES.get(label, label)
    if layout.labels and label and label not in layout.labels:
        what = f"{layout.label} '{label[:40]}' is unknown"
        mend = f"Known: {', '.join(layout.labels)}; the columns are {' TAB '.join(layout.columns)}."
        raise DataError(path, line, what, mend)
    return Example(
        text="\n".join(cells[name] for name in layout.text),
        pair=cells.get(layout.pair, ""),
        label=label,
        example_id=cells.get("id", cells.get("index_id", "")),
        language=cells.get("language", ""),
        line=line,
    )
