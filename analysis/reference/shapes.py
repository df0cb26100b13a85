"""The printed shape of each table: rows, columns, and for each cell where to look on both sides."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from analysis import labels
from analysis.reference.published import ADDRESS, HERE, Address, check_paper

Entry = Mapping[str, Any]
_SIDES = ("ours", "printed")


@dataclass(frozen=True, slots=True)
class Query:
    """What of ours stands in a cell.

    Attributes:
        kind: `score`, `rho`, `hyper` or `cosine`.
        task: As our trials name it.
        source: Language of training.
        train: Treebank of training; empty for any.
        encoder: Name of the encoder; empty for any.
        ablation: As our trials name it; for rho the state.
        metrics: The first that was scored counts.
        split: `dev` or `test`.
        tests: For each target, patterns of test sets, the first that matches counts; several
            targets are averaged.
        among: Patterns of all test sets that are averaged; in place of `tests`.
        less: Languages that `among` leaves out.
        of: How many languages the paper's average is over; 0 where it does not matter.
        targets: Languages of `tests`, for messages.
        is_mean: Whether it is an average over languages.
        is_delta: Whether it is shown as difference to the reference.
    """

    kind: str
    task: str
    source: str
    train: str
    encoder: str
    ablation: str
    metrics: tuple[str, ...]
    split: str
    tests: tuple[tuple[str, ...], ...]
    among: tuple[str, ...]
    less: tuple[str, ...]
    of: int
    targets: tuple[str, ...]
    is_mean: bool
    is_delta: bool


@dataclass(frozen=True, slots=True)
class Spot:
    """One cell of a printed table: where the paper has it, and what of ours stands there."""

    printed: Address
    query: Query


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its head and its cells."""

    head: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Rows below one head, which may be empty."""

    head: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as printed.

    Attributes:
        paper: Key of `published.PAPERS`.
        number: As printed: `6`, `IV`.
        title: What it shows.
        columns: Heads of the columns of numbers.
        sections: Its rows.
        digits: Decimals.
        thresholds: Losses (fractions) at which the two severe colours begin; None: no colours.
        needs: How an ablation begins that a study must have; empty for any.
    """

    paper: str
    number: str
    title: str
    columns: tuple[str, ...]
    sections: tuple[Section, ...]
    digits: int
    thresholds: tuple[float, float] | None
    needs: str = ""

    @property
    def name(self) -> str:
        """Stem of its files."""
        return f"{self.paper}-{self.number.lower()}"


@cache
def shapes(paper: str) -> tuple[Shape, ...]:
    """The tables of a paper, in its order.

    Raises:
        UnknownPaper: no such paper.
    """
    check_paper(paper)
    document = tomllib.loads((HERE / f"{paper}.toml").read_text(encoding="utf-8"))
    return tuple(_shape(paper, document, table) for table in document["table"])


def _shape(paper: str, document: Entry, table: Entry) -> Shape:
    axes = document.get("axes", {})
    columns = _axis(axes, table["columns"])
    sections = []
    for each in _axis(axes, table.get("each", [{}])):
        for section in table["sections"]:
            outer = (table, each, section)
            rows = tuple(
                Row(
                    _head(row),
                    tuple(_spot(document, (*outer, column, row), table) for column in columns),
                )
                for row in _axis(axes, section["rows"])
            )
            sections.append(Section(each.get("head") or section.get("head", ""), rows))
    colours = table.get("colours", [0.02, 0.05] if table.get("deltas") else None)
    return Shape(
        paper,
        table["number"],
        table["title"],
        tuple(map(_head, columns)),
        tuple(sections),
        table.get("digits", 2),
        (colours[0], colours[1]) if colours else None,
        document.get("needs", ""),
    )


def _axis(axes: Mapping[str, Sequence[Entry]], named: str | Sequence[Entry]) -> Sequence[Entry]:
    return axes[named] if isinstance(named, str) else named


def _head(entry: Entry) -> str:
    if "head" in entry:
        return str(entry["head"])
    return labels.language(entry["target"]) if "target" in entry else str(entry["system"])


def _spot(document: Entry, levels: Sequence[Entry], table: Entry) -> Spot:
    """Merge what the levels say, the inner ones last; then tell the two sides apart."""
    both: dict[str, Any] = {}
    sides: dict[str, dict[str, Any]] = {side: {} for side in _SIDES}
    for level in levels:
        both |= {key: value for key, value in level.items() if key not in _SIDES}
        for side in _SIDES:
            sides[side] |= level.get(side, {})
    ours, printed = both | sides["ours"], both | sides["printed"]
    printed |= {"table": table["number"]}
    if printed.get("source") == "{target}":
        is_mean = "mean" in printed
        printed["source"] = "target" if is_mean else printed["target"]
    address = tuple(str(printed.get(name, "")) for name in ADDRESS)
    return Spot(address, _query(document, ours))


def _query(document: Entry, entry: Entry) -> Query:
    named = document["ours"]
    eval_set, target = entry.get("eval_set", ""), entry.get("target", "")
    source = entry.get("source", "")
    wanted = named.get("test", {}).get(eval_set, ())
    patterns = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    alias = named.get("target", {}).get(eval_set, {})
    mean = entry.get("mean", document.get("means", {}).get(target))
    among: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tests: tuple[tuple[str, ...], ...] = ()
    if mean == "*":
        among = tuple(pattern.replace("{target}", "*") for pattern in patterns)
    elif patterns:
        less = {source} if "mean" not in entry else set()
        targets = tuple(t for t in (mean or [target]) if mean is None or t not in less)
        targets = tuple(alias.get(t, t) for t in targets)
        tests = tuple(tuple(p.replace("{target}", t) for p in patterns) for t in targets)
    done = entry.get("system" if named.get("by") == "system" else "ablation", "")
    ablation = _translated(done, named["ablation"])
    metric = entry.get("metric", "")
    return Query(
        kind=entry.get("kind", "score"),
        task=named["task"].get(entry["task"], entry["task"]),
        source=target if source == "{target}" else source,
        train=entry.get("train", ""),
        encoder=entry.get("encoder", ""),
        ablation=ablation,
        metrics=tuple(named["metric"].get(metric, [metric])),
        split=entry.get("split", "test"),
        tests=tests,
        among=among,
        less=tuple(entry.get("less", ())),
        of=entry.get("of", 0),
        targets=targets,
        is_mean=mean is not None,
        is_delta=bool(entry.get("deltas")) and ablation != labels.REFERENCE,
    )


def _translated(text: str, table: Mapping[str, str]) -> str:
    """Our name for an ablation; the first pattern that fits, its `*` put in for `{}`."""
    for pattern, name in _by_length(table):
        found = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)"), text)
        if found:
            return name.replace("{}", found[1]) if found.groups() else name
    return text


def _by_length(table: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Exact names first, then the longest pattern, so that `D_*_G` comes before `D_*`."""
    return iter(sorted(table.items(), key=lambda item: ("*" in item[0], -len(item[0]))))
