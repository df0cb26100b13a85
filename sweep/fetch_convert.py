"""Parquet files of the Hugging Face hub -> the text layouts that the readers know.

What no line of a layout can hold is not invented: an example without text or class is left out,
a tab or line end inside a text becomes a blank, and both are counted.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from sweep.fetch_http import FetchError

WIKIANN_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
XNLI_LABELS = ("entailment", "neutral", "contradiction")
PAWSX_LABELS = ("0", "1")

_BREAKS = re.compile(r"[\t\r\n\0]+")

Write = Callable[[IO[str], Iterator[Mapping[str, Any]], str, "Counts"], None]


@dataclass
class Counts:
    """What became of the rows of one file."""

    n_written: int = 0
    n_left_out: int = 0
    n_mended: int = 0

    def __str__(self) -> str:
        told = [f"{self.n_written} examples"]
        if self.n_left_out:
            told.append(f"{self.n_left_out} without text or class left out")
        if self.n_mended:
            told.append(f"{self.n_mended} texts with tabs or line ends mended")
        return ", ".join(told)

    def text(self, value: object) -> str:
        """A text on one line; empty where there is none."""
        found = str(value or "").strip()
        mended = _BREAKS.sub(" ", found)
        self.n_mended += mended != found
        return mended


def convert(source: Path, target: Path, layout: str, language: str) -> Counts:
    """Write a parquet file in one of our layouts.

    Args:
        source: Parquet, as the hub has it.
        target: Is written; the caller puts it in its place.
        layout: `wikiann`, `xnli` or `pawsx`.
        language: Goes before each token of `wikiann`.

    Raises:
        FetchError: it is no parquet file, lacks a column, or names its classes differently.
    """
    write, columns, label, classes = _LAYOUTS[layout]
    counts = Counts()
    try:
        with pq.ParquetFile(source) as file:
            missing = [name for name in columns if name not in file.schema_arrow.names]
            if missing:
                raise FetchError(f"{source}: no column '{missing[0]}'. The data set has changed.")
            _check_classes(source, file.schema_arrow, label, classes)
            rows = (
                row for batch in file.iter_batches(columns=columns) for row in batch.to_pylist()
            )
            with target.open("w", encoding="utf-8", newline="") as out:
                write(out, rows, language, counts)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FetchError(f"{source}: not a parquet file ({error}). Fetch it again.") from error
    return counts


def _check_classes(source: Path, schema: pa.Schema, label: str, classes: Sequence[str]) -> None:
    """Refuse numbers that mean other classes than ours; files without such a note are trusted."""
    try:
        about = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][label]
        names = about.get("feature", about)["names"]
    except (KeyError, TypeError, ValueError):
        return
    if tuple(names) != tuple(classes):
        what = f"column '{label}' numbers {', '.join(map(str, names))}"
        raise FetchError(f"{source}: {what}, not {', '.join(classes)}. The data set has changed.")


def _wikiann(
    out: IO[str], rows: Iterator[Mapping[str, Any]], language: str, counts: Counts
) -> None:
    for row in rows:
        tokens = [counts.text(token) for token in row["tokens"]]
        tags = [_named(tag, WIKIANN_TAGS) for tag in row["ner_tags"]]
        # strict: unequal columns would shift every tag behind the fault
        lines = [
            f"{language}:{word}\t{tag}\n" for word, tag in zip(tokens, tags, strict=True) if word
        ]
        if not lines or None in tags:
            counts.n_left_out += 1
            continue
        out.writelines([*lines, "\n"])
        counts.n_written += 1


def _xnli(out: IO[str], rows: Iterator[Mapping[str, Any]], _: str, counts: Counts) -> None:
    for row in rows:
        pair = counts.text(row["premise"]), counts.text(row["hypothesis"])
        label = _named(row["label"], XNLI_LABELS)
        if not all(pair) or label is None:
            counts.n_left_out += 1
            continue
        out.write(f"{pair[0]}\t{pair[1]}\t{label}\n")
        counts.n_written += 1


def _pawsx(out: IO[str], rows: Iterator[Mapping[str, Any]], _: str, counts: Counts) -> None:
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    for row in rows:
        pair = counts.text(row["sentence1"]), counts.text(row["sentence2"])
        label = _named(row["label"], PAWSX_LABELS)
        if not all(pair) or label is None:
            counts.n_left_out += 1
            continue
        writer.writerow([*pair, label])
        counts.n_written += 1


def _named(number: int | None, classes: Sequence[str]) -> str | None:
    """The class that a number means; None for -1, with which the hub marks a missing one."""
    return classes[number] if number is not None and 0 <= number < len(classes) else None


_LAYOUTS: Mapping[str, tuple[Write, list[str], str, Sequence[str]]] = {
    "wikiann": (_wikiann, ["tokens", "ner_tags"], "ner_tags", WIKIANN_TAGS),
    "xnli": (_xnli, ["premise", "hypothesis", "label"], "label", XNLI_LABELS),
    "pawsx": (_pawsx, ["sentence1", "sentence2", "label"], "label", PAWSX_LABELS),
}
"""Layout -> who writes it, the columns it needs, the one with classes, and their names in order."""
