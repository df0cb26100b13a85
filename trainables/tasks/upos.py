"""UPOS tagging: one label a word, accuracy over all words of the file."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.metrics.accuracy import count_right
from trainables.metrics.by_sentence import BySentence, words_by_sentence
from trainables.metrics.tags import compare_chunks, count_tags
from trainables.tasks.tagging import Tagging, indices, refuse_empty

UNTAGGED = "_"
"""What CoNLL-U writes for no annotation; never a label, always wrong in a denominator."""


class Upos(Tagging):
    """Universal part-of-speech tags (a `trainables.tasks.base.Task`)."""

    name: ClassVar[str] = "upos"
    metric: ClassVar[str] = "accuracy"

    def inventory(self, train: Corpus) -> tuple[str, ...]:
        """The tags of the training file, sorted."""
        labels = tuple(sorted(set(train.upos) - {UNTAGGED, ""}))
        if not labels:
            raise DataError(
                train.location,
                None,
                "no word has a UPOS tag",
                "Train on a treebank with UPOS tags.",
            )
        return labels

    def gold(self, corpus: Corpus, labels: tuple[str, ...]) -> Int[np.ndarray, "W 1"]:
        """Index of each word's tag; -1 for one that training never saw."""
        return indices(corpus, corpus.upos, labels, "a UPOS column")[:, None]

    def score(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 1"],
        predicted: Int[np.ndarray, "W 1"],
        labels: tuple[str, ...],
    ) -> Mapping[str, tuple[float, int]]:
        """Accuracy, macro and micro F1 over every word, and XTREME's F1 over chunks (D-18)."""
        refuse_empty(corpus)
        right = count_right(gold[:, 0], predicted[:, 0])
        # Tags that training never saw come after the labels, so that they stay apart.
        others = sorted(set(corpus.upos) - {*labels, UNTAGGED})
        tags = (*labels, *others, UNTAGGED)
        there = indices(corpus, corpus.upos, tags, "a UPOS column")
        tagged = np.where(there == len(tags) - 1, -1, there)
        counts = count_tags(tagged, predicted[:, 0], len(tags))
        chunks = compare_chunks(there, predicted[:, 0], corpus.sentence_start, tags)
        return {
            "accuracy": (right.value, right.n),
            "f1_macro": (counts.macro, right.n),
            "f1_micro": (counts.micro, right.n),
            "pos_f1_xtreme": (chunks.f1, chunks.n_gold),
        }

    def by_sentence(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 1"],
        predicted: Int[np.ndarray, "W 1"],
        labels: tuple[str, ...],  # noqa: ARG002 - indices say all
        metric: str,
    ) -> BySentence | None:
        """Words of each sentence, and those tagged wrongly."""
        if metric != "accuracy":
            return None
        right = (gold == predicted) & (gold >= 0)
        return words_by_sentence(right[:, 0], corpus.sentence_start)
