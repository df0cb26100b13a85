"""What each sentence adds to a score: counts that can be drawn again, sentence by sentence."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from trainables.metrics.spans import Spans, agreeing


@dataclass(frozen=True, slots=True)
class BySentence:
    """The counts of one score, a sentence each.

    What was got right is `items - missed`; misses are fewer, so they take less room.

    Attributes:
        items: What there is to get right: words, spans, 1 for a whole text.
        missed: How many of these were not.
        spurious: What was predicted beside the right ones, for F1; None where each item gets one
            prediction, for accuracy.
    """

    items: Int[np.ndarray, " S"]
    missed: Int[np.ndarray, " S"]
    spurious: Int[np.ndarray, " S"] | None = None

    @property
    def value(self) -> float:
        """The score: accuracy, or with `spurious` F1; a fraction.

        Raises:
            ZeroDivisionError: there are no items, and it is an accuracy.
        """
        there, right = int(self.items.sum()), int((self.items - self.missed).sum())
        if self.spurious is None:
            return right / there
        both = there + right + int(self.spurious.sum())
        return 2 * right / both if both else 0.0


def words_by_sentence(
    right: Bool[np.ndarray, " W"],
    sentence_start: Int[np.ndarray, " S+1"],
    counted: Bool[np.ndarray, " W"] | None = None,
) -> BySentence:
    """Counts of a score over words.

    Args:
        right: Whether each word was got right.
        sentence_start: First word of each sentence, and the number of words.
        counted: Words that count; None for all.
    """
    if counted is None:
        counted = np.ones(len(right), bool)
    return BySentence(_sums(counted, sentence_start), _sums(counted & ~right, sentence_start))


def spans_by_sentence(
    gold: Spans, predicted: Spans, sentence_start: Int[np.ndarray, " S+1"]
) -> BySentence:
    """Counts of the F1 of spans; a span is in one sentence."""
    right = agreeing(gold, predicted)
    n_gold, n_predicted, n_right = (
        np.diff(np.searchsorted(starts, sentence_start))
        for starts in (gold.start, predicted.start, right)
    )
    return BySentence(n_gold, n_gold - n_right, n_predicted - n_right)


def texts_one_by_one(right: Bool[np.ndarray, "S k"]) -> BySentence:
    """Counts of a score over whole texts, with k answers to each of them."""
    n, k = right.shape
    return BySentence(np.full(n, k), k - right.sum(axis=1))


def _sums(
    words: Bool[np.ndarray, " W"], sentence_start: Int[np.ndarray, " S+1"]
) -> Int[np.ndarray, " S"]:
    return np.diff(np.concatenate([[0], np.cumsum(words)])[sentence_start])
