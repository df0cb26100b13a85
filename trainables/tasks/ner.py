"""Named entities, as tagging with BIO labels; span F1 over all words of the file."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.metrics.spans import OUTSIDE, compare_spans, find_spans, kinds_of, tag_codes
from trainables.tasks.tagging import Tagging, indices, refuse_empty


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
        kinds = kinds_of({*labels, *corpus.tags})
        there = tag_codes(corpus.tags, kinds)
        found = tag_codes(labels, kinds)[predicted[:, 0]]
        scores = {}
        for reading in ("lenient", "strict"):
            counts = compare_spans(
                find_spans(there, corpus.sentence_start, reading),
                find_spans(found, corpus.sentence_start, reading),
            )
            scores[f"f1_{reading}"] = counts.f1, counts.n_gold
        return scores
