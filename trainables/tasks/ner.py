"""Named entities, as tagging with BIO labels; span F1 over all words of the file."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.metrics.by_sentence import BySentence, spans_by_sentence
from trainables.metrics.spans import (
    OUTSIDE,
    Reading,
    Spans,
    compare_spans,
    find_spans,
    kinds_of,
    tag_codes,
)
from trainables.tasks.tagging import Tagging, indices, refuse_empty

READINGS: tuple[Reading, ...] = ("lenient", "strict")


class Ner(Tagging):
    """Named-entity recognition (a `trainables.tasks.base.Task`).

    The best epoch is picked by conlleval's F1, the lenient one, as in the papers.
    """

    name: ClassVar[str] = "ner"
    metric: ClassVar[str] = "f1_lenient"

    def inventory(self, train: Corpus) -> tuple[str, ...]:
        """The BIO tags of the training file, sorted; `O` is one of them."""
        labels = tuple(sorted({OUTSIDE, *train.tags}))
        if labels == (OUTSIDE,):
            raise DataError(
                train.location,
                None,
                "no word has an entity tag",
                "Train on a file with BIO tags.",
            )
        return labels

    def gold(self, corpus: Corpus, labels: tuple[str, ...]) -> Int[np.ndarray, "W 1"]:
        """Index of each word's tag; -1 for one that training never saw."""
        return indices(corpus, corpus.tags, labels, "an entity tag")[:, None]

    def score(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 1"],  # noqa: ARG002 - it has no names of kinds never learnt
        predicted: Int[np.ndarray, "W 1"],
        labels: tuple[str, ...],
    ) -> Mapping[str, tuple[float, int]]:
        """Span F1, lenient and strict; a gold span of a kind that training never saw is missed."""
        refuse_empty(corpus)
        scores = {}
        for reading in READINGS:
            counts = compare_spans(*_spans(corpus, predicted, labels, reading))
            scores[f"f1_{reading}"] = counts.f1, counts.n_gold
        return scores

    def by_sentence(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 1"],  # noqa: ARG002 - as in `score`
        predicted: Int[np.ndarray, "W 1"],
        labels: tuple[str, ...],
        metric: str,
    ) -> BySentence | None:
        """Spans of each sentence, those not found, and those found where none is."""
        reading = next((r for r in READINGS if metric == f"f1_{r}"), None)
        if reading is None:
            return None
        spans = _spans(corpus, predicted, labels, reading)
        return spans_by_sentence(*spans, corpus.sentence_start)


def _spans(
    corpus: Corpus, predicted: Int[np.ndarray, "W 1"], labels: tuple[str, ...], reading: Reading
) -> tuple[Spans, Spans]:
    """Gold and predicted spans of a file, of the same kinds."""
    kinds = kinds_of({*labels, *corpus.tags})
    there = tag_codes(corpus.tags, kinds)
    found = tag_codes(labels, kinds)[predicted[:, 0]]
    start = corpus.sentence_start
    return find_spans(there, start, reading), find_spans(found, start, reading)
