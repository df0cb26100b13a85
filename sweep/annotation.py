"""What a task needs to find annotated in a file, and which labels it finds there; no torch."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainables.data.bio import check_bio
from trainables.data.sentence import DataError
from trainables.data.trees import check_sentences
from trainables.registry import TEXT_LAYOUTS
from trainables.spec import DataRef


@dataclass(frozen=True, slots=True)
class Need:
    """What one kind of task reads off a sentence or example.

    Attributes:
        what: Its name in messages.
        labels: Labels of a sentence, one an item that is scored.
        is_given: Whether a sentence is annotated at all; one without entities still is.
    """

    what: str
    labels: Callable[[Any], Iterable[str]]
    is_given: Callable[[Any], bool]


NEEDS: Mapping[str, Need] = {
    "upos": Need(
        "UPOS tags",
        lambda sentence: (tag for tag in sentence.upos if tag != "_"),
        lambda sentence: any(tag != "_" for tag in sentence.upos),
    ),
    "ner": Need(
        "entity tags",
        lambda sentence: (tag[2:] for tag in sentence.tags if tag.startswith("B-")),
        lambda sentence: bool(sentence.tags),
    ),
    "parsing": Need(
        "heads",
        lambda sentence: (deprel.partition(":")[0] for deprel in sentence.deprels),
        lambda sentence: bool(sentence.heads),
    ),
}
"""Task -> what it needs; tasks that are not named read texts, each with a class."""

CLASS = Need("classes", lambda example: (example.label,), lambda example: bool(example.label))


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one task finds in one file.

    Attributes:
        labels: Items of each label.
        fault: Why the task cannot use the file; empty if it can.
        notes: What is odd about it.
    """

    labels: Mapping[str, int]
    fault: str = ""
    notes: tuple[str, ...] = ()


def annotation(task: str, ref: DataRef, contents: Sequence[Any]) -> Annotation:
    """Look for what a task needs in the sentences or examples of a file."""
    reads_texts = task not in NEEDS
    if reads_texts != (ref.layout in TEXT_LAYOUTS):
        held, wanted = ("texts", "words")[:: -1 if reads_texts else 1]
        return Annotation({}, f"{ref.location}: a file of {held}, and task '{task}' reads {wanted}")
    need = NEEDS.get(task, CLASS)
    labels = Counter(
        label for item in contents if need.is_given(item) for label in need.labels(item)
    )
    n_bare = sum(not need.is_given(item) for item in contents)
    n = len(contents)
    if n_bare == n:
        return Annotation(labels, f"{ref.location}: without {need.what}, which '{task}' needs")
    if task == "parsing":
        try:
            check_sentences(contents, ref.location)
        except DataError as error:
            return Annotation(labels, str(error))
    notes = []
    if n_bare:
        notes.append(f"{n_bare} of {n} sentences are without {need.what}")
    n_forests = sum(sentence.heads.count(0) > 1 for sentence in contents if task == "parsing")
    if n_forests:
        notes.append(f"{n_forests} of {n} sentences have several roots; predicted trees have one")
    if task == "ner":
        notes += broken_spans(contents)
        if not labels:
            notes.append("no entity begins here; F1 is 0 whatever is predicted")
    return Annotation(labels, notes=tuple(notes))


def broken_spans(sentences: Sequence[Any]) -> list[str]:
    """Say how many sentences have an I- that goes on from nothing; such files may be used."""
    broken = [(sentence.line, fault) for sentence in sentences if (fault := check_bio(sentence))]
    if not broken:
        return []
    line, fault = broken[0]
    n = f"{len(broken)} of {len(sentences)} sentences"
    first = f"first in that of line {line}: {fault}"
    lenient = "lenient F1 takes it for one, strict F1 does not"
    return [f"{n} have an entity that does not begin with B- ({first}); {lenient}"]


def unseen(train: Mapping[str, int], target: Mapping[str, int]) -> tuple[str, ...]:
    """Labels of a target that training never saw, those of most items first."""
    return tuple(
        sorted((name for name in target if name not in train), key=lambda name: -target[name])
    )
