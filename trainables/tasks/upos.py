"""UPOS tagging: one label a word, accuracy over all words of the file."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.heads.tagger import Tagger
from trainables.metrics.accuracy import count_right
from trainables.spec import TrialOptions
from trainables.tasks.base import Readings

UNTAGGED = "_"
"""What CoNLL-U writes for no annotation; never a label, always wrong in a denominator."""


class Upos:
    """Universal part-of-speech tags (a `trainables.tasks.base.Task`)."""

    name: ClassVar[str] = "upos"
    metric: ClassVar[str] = "accuracy"
    level: ClassVar[Literal["word"]] = "word"

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
        index = {label: i for i, label in enumerate(labels)}
        if len(corpus.upos) != corpus.n_words:
            raise DataError(
                corpus.location,
                None,
                f"{len(corpus.upos)} of {corpus.n_words} words have a UPOS column",
                "Use a treebank in which every word has one.",
            )
        found = (index.get(tag, -1) for tag in corpus.upos)
        return np.fromiter(found, np.int64, corpus.n_words)[:, None]

    def head(
        self, hidden_size: int, labels: tuple[str, ...], options: TrialOptions, seed: int
    ) -> nn.Module:
        """One linear layer."""
        return Tagger(hidden_size, len(labels), dropout=options.head_dropout, seed=seed)

    def loss(
        self, head: nn.Module, readings: Readings, gold: Int[Tensor, "w 1"]
    ) -> Float[Tensor, ""]:
        """Cross-entropy, summed over labelled words."""
        return cross_entropy(
            head(readings.words).float(), gold[:, 0], ignore_index=-1, reduction="sum"
        )

    def predict(self, head: nn.Module, readings: Readings) -> Int[Tensor, "w 1"]:
        """The tag of the highest logit; the first one where several are equal."""
        best: Tensor = head(readings.words).argmax(dim=-1, keepdim=True)
        return best

    def score(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, "W 1"],
        predicted: Int[np.ndarray, "W 1"],
        labels: tuple[str, ...],  # noqa: ARG002 - accuracy needs no names; span metrics will
    ) -> Mapping[str, tuple[float, int]]:
        """Accuracy over every word of the file."""
        if corpus.n_words == 0:
            raise DataError(
                corpus.location, None, "there are no words", "Use a file with sentences."
            )
        right = count_right(gold[:, 0], predicted[:, 0])
        return {"accuracy": (right.value, right.n)}
