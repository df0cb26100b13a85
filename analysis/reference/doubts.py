"""What is doubtful in a printed number, by rule (PROTOCOLS §4, §5); pure.

A doubt that leaves a number out keeps it visible and marked, and counts it in no agreement.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol

RowMeans = Mapping[tuple[str, ...], tuple[int, str]]
"""(table, task, source, ablation) of a printed mean -> (its missing cells, verdict)."""

_TABLE, _TASK, _SYSTEM, _SOURCE, _TARGET, _EVAL_SET, _ABLATION, _METRIC = range(8)
_MEANS_OF = {"parsing": "6", "pos": "7", "ner": "8"}
"""Task -> the table that prints the rows of its means, which Table 1 repeats."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One thing to know of a printed number.

    Attributes:
        kind: `mean`, `suspect`, `label`, `derived`, `informational`, `relative`, `inferred`,
            `twice`, `unchecked` or `note`.
        text: Said below a table.
        leaves_out: `all`: counts nowhere; `value`: differences to it count; `nothing`.
    """

    kind: str
    text: str
    leaves_out: Literal["all", "value", "nothing"] = "nothing"


_NOTES: tuple[tuple[str, str, Literal["all", "value", "nothing"]], ...] = (
    ("suspect: ", "suspect", "all"),
    ("printed Slovenian", "label", "all"),  # D-01
    ("derived from the printed average", "derived", "all"),
    ("CoNLL-2003 has MISC", "relative", "value"),
    ("test set not the PUD one", "inferred", "value"),  # D-09
)
"""How a part of a note begins -> kind of doubt, and what it leaves out."""

_TEXTS = {
    "label": "printed as Slovenian, which PUD does not have; probably Swedish (D-01)",
    "inferred": "its test set is no PUD treebank; which one it is was inferred (D-09)",
    "relative": "CoNLL-2003 has MISC, which WikiANN lacks: only differences to it can be compared",
}
"""Kind -> what to say in place of the note."""

_SILENT = frozenset(
    {
        "printed mean", "not reproducible from the printed rows", "zero-shot", "talk",
        "in-language supervision", "translate-train", "caption of Table 5",
        "only relative values usable", "probably Swedish (no Slovenian PUD exists)",
        "enf = en,de", "noenf = the other languages", "AVG excludes en", "AVG excludes en and zh",
    }
)  # fmt: skip
"""Parts of notes that say nothing of a number's worth, or that a rule says better."""


class _Cell(Protocol):
    @property
    def text(self) -> str: ...


def doubts_of(
    document: str, address: tuple[str, ...], note: str, means: RowMeans
) -> tuple[Doubt, ...]:
    """Everything doubtful in one number, but for what other numbers say of it (`twice`)."""
    found = []
    for part in filter(None, note.split("; ")):
        rule = next((rule for rule in _NOTES if part.startswith(rule[0])), None)
        if rule is not None:
            found.append(Doubt(rule[1], _TEXTS.get(rule[1], part), rule[2]))
        elif part not in _SILENT:
            found.append(Doubt("note", part))
    return (*_of_a_mean(document, address, means), *_of_the_paper(document, address), *found)


def _of_a_mean(document: str, address: tuple[str, ...], means: RowMeans) -> Iterator[Doubt]:
    """D-25: 57 of the 60 means of Tables 6-8 that can be checked are not those of their rows."""
    if document != "first-align" or address[_TARGET] != "X":
        return
    task = address[_TASK]
    key = (_MEANS_OF.get(task, ""), task, address[_SOURCE], address[_ABLATION])
    if address[_TABLE] not in {"1", key[0]} or key not in means:
        return
    missing, verdict = means[key]
    if verdict == "does not reproduce":
        yield Doubt("mean", "printed mean; it is not that of the 16 printed rows (D-25)", "all")
    elif missing:
        text = "printed mean; cannot be checked, as printed rows are missing or suspect"
        yield Doubt("unchecked", text)


def _of_the_paper(document: str, address: tuple[str, ...]) -> Iterator[Doubt]:
    """D-12: the parser that scored Wu and Dredze's LAS mislabelled."""
    if document == "beto" and address[_METRIC] == "las" and address[_SYSTEM].startswith("mbert"):
        text = "printed LAS is too low for its UAS and informational only (D-12)"
        yield Doubt("informational", text, "all")


def twice(cells: Mapping[tuple[str, ...], _Cell]) -> Iterator[tuple[tuple[str, ...], Doubt]]:
    """Numbers that two tables print unlike, beyond the rounding of the coarser one."""
    same: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for address in cells:
        same[address[_TABLE + 1 :]].append(address)
    for addresses in same.values():
        for address in addresses:
            for other in addresses:
                texts = cells[address].text, cells[other].text
                if address != other and not _agree(*map(Decimal, texts)):
                    yield address, Doubt("twice", f"Table {other[_TABLE]} prints {texts[1]}")


def _agree(one: Decimal, other: Decimal) -> bool:
    coarser = max(int(one.as_tuple().exponent), int(other.as_tuple().exponent))
    return abs(one - other) <= Decimal(5).scaleb(coarser - 1)
