"""F1 over the tags of words: macro, micro, and the span F1 that XTREME reports for UPOS (D-18)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from trainables.metrics.spans import SpanCounts, Spans, compare_spans


@dataclass(frozen=True, slots=True)
class TagCounts:
    """Words by tag: rightly predicted, predicted, and there.

    Attributes:
        right: Words of each tag that were predicted as such.
        predicted: Words predicted as each tag.
        gold: Words of each tag.
    """

    right: Int[np.ndarray, " tags"]
    predicted: Int[np.ndarray, " tags"]
    gold: Int[np.ndarray, " tags"]

    def __add__(self, other: "TagCounts") -> "TagCounts":
        return TagCounts(
            self.right + other.right, self.predicted + other.predicted, self.gold + other.gold
        )

    @property
    def macro(self) -> float:
        """Mean F1 over tags that are in the file or were predicted, as in scikit-learn.

        Raises:
            ZeroDivisionError: there are no words.
        """
        either = self.predicted + self.gold
        there = either > 0
        return float((2 * self.right[there] / either[there]).sum()) / int(there.sum())

    @property
    def micro(self) -> float:
        """F1 of all words together.

        Equal to accuracy when every word of the file has a tag, since each word then stands once
        among the predicted and once among the gold; more where some have none.

        Raises:
            ZeroDivisionError: there are no words.
        """
        return 2 * int(self.right.sum()) / int(self.predicted.sum() + self.gold.sum())


def count_tags(
    gold: Int[np.ndarray, " w"], predicted: Int[np.ndarray, " w"], n_tags: int
) -> TagCounts:
    """Count words by tag; a word without gold tag (negative index) is predicted, but not there."""
    return TagCounts(
        right=np.bincount(gold[gold == predicted], minlength=n_tags),
        predicted=np.bincount(predicted, minlength=n_tags),
        gold=np.bincount(gold[gold >= 0], minlength=n_tags),
    )


def xtreme_chunks(
    codes: Int[np.ndarray, " w"], sentence_start: Int[np.ndarray, " S+1"], tags: Sequence[str]
) -> Spans:
    """Chunks that seqeval 0.0.12 sees in raw UPOS tags.

    A tag is taken for a prefix (its first letter) and a type (the whole tag, as it has no dash).
    So a run of equal tags is one chunk, but for tags that begin with S: SCONJ and SYM look like
    chunks of a single word, and each word is one. Versions from 1.0 on take the type from the
    second letter and hold CCONJ and SCONJ for the same; their scores differ.

    Args:
        codes: Index of each word's tag.
        sentence_start: First word of each sentence, and the number of words.
        tags: The tags; none begins with B, E or O or holds a dash, which is true of UPOS and `_`.
    """
    is_single = np.array([tag.startswith("S") for tag in tags], bool)[codes]
    is_first = np.zeros(len(codes) + 1, bool)
    is_first[sentence_start] = True
    opens = is_first[:-1] | is_single
    opens[1:] |= codes[1:] != codes[:-1]
    start = np.flatnonzero(opens)
    return Spans(start, np.append(start[1:], len(codes)), codes[start])


def compare_chunks(
    gold: Int[np.ndarray, " w"],
    predicted: Int[np.ndarray, " w"],
    sentence_start: Int[np.ndarray, " S+1"],
    tags: Sequence[str],
) -> SpanCounts:
    """What XTREME calls the F1 of part-of-speech tagging: chunks of equal tags as spans.

    Args:
        gold: Index of each word's tag; every word has one, `_` where there is no annotation.
        predicted: Index of each word's predicted tag.
        sentence_start: First word of each sentence, and the number of words.
        tags: The tags, those that training never saw included.
    """
    return compare_spans(
        xtreme_chunks(gold, sentence_start, tags), xtreme_chunks(predicted, sentence_start, tags)
    )
