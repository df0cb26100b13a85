"""One class a text or pair of texts: linear on the last state of the first special piece ([CLS]).

No pooler: PROTOCOLS 1.6. An example that was cut to the window is scored like any other.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.data.sentence import DataError
from trainables.data.texts import TextCorpus
from trainables.heads.tagger import Tagger
from trainables.metrics.accuracy import count_right
from trainables.metrics.by_sentence import BySentence, texts_one_by_one
from trainables.metrics.tags import count_tags
from trainables.spec import TrialOptions
from trainables.tasks.base import Readings


def class_labels(train: TextCorpus) -> tuple[str, ...]:
    """The classes of a training file, sorted.

    Raises:
        DataError: there are fewer than two.
    """
    labels = tuple(sorted(set(train.labels) - {""}))
    if len(labels) < 2:  # noqa: PLR2004 - one class is no choice
        what = f"the examples have {len(labels)} classes ({', '.join(labels) or 'none'})"
        raise DataError(train.location, None, what, "Train on a file with two or more.")
    return labels


def class_indices(corpus: TextCorpus, labels: tuple[str, ...]) -> Int[np.ndarray, "S 1"]:
    """Index of each example's class; below 0, one number a class, for those not in `labels`.

    Raises:
        DataError: an example has no class.
    """
    if "" in corpus.labels:
        line, n = corpus.lines[corpus.labels.index("")], corpus.labels.count("")
        what = f"{n} of {corpus.n_sentences} examples have no class, this one first"
        raise DataError(corpus.location, line, what, "Use a file with classes; XTREME hides some.")
    unseen = sorted(set(corpus.labels) - set(labels))
    index = {label: i for i, label in enumerate(labels)}
    index |= {label: -1 - i for i, label in enumerate(unseen)}
    return np.array([index[label] for label in corpus.labels], dtype=np.int64)[:, None]


class Classification:
    """A text's class (a `trainables.tasks.base.Task`)."""

    name: ClassVar[str]
    metric: ClassVar[str] = "accuracy"
    level: ClassVar[Literal["sentence"]] = "sentence"

    def inventory(self, train: TextCorpus) -> tuple[str, ...]:
        """The classes of the training file, sorted."""
        return class_labels(train)

    def gold(self, corpus: TextCorpus, labels: tuple[str, ...]) -> Int[np.ndarray, "S 1"]:
        """Index of each example's class; below 0 for one that training never saw."""
        return class_indices(corpus, labels)

    def head(
        self, hidden_size: int, labels: tuple[str, ...], options: TrialOptions, seed: int
    ) -> nn.Module:
        """Dropout and one linear layer."""
        return Tagger(hidden_size, len(labels), dropout=options.head_dropout, seed=seed)

    def loss(
        self, head: nn.Module, readings: Readings, gold: Int[Tensor, "s 1"]
    ) -> Float[Tensor, ""]:
        """Cross-entropy, summed over the examples that have a class to learn."""
        target = gold[:, 0].clamp(min=-1)
        logits = head(readings.sentences).float()
        return cross_entropy(logits, target, ignore_index=-1, reduction="sum")

    def predict(self, head: nn.Module, readings: Readings) -> Int[Tensor, "s 1"]:
        """The class of the highest logit; the first one where several are equal."""
        best: Tensor = head(readings.sentences).argmax(dim=-1, keepdim=True)
        return best

    def score(
        self,
        corpus: TextCorpus,
        gold: Int[np.ndarray, "S 1"],
        predicted: Int[np.ndarray, "S 1"],
        labels: tuple[str, ...],
    ) -> Mapping[str, tuple[float, int]]:
        """Accuracy and macro F1 over every example of the file."""
        assert len(gold) == corpus.n_sentences  # noqa: S101 - no cut shrinks a denominator
        right = count_right(gold[:, 0], predicted[:, 0])
        return {
            "accuracy": (right.value, right.n),
            "f1_macro": (_macro_f1(gold[:, 0], predicted[:, 0], len(labels)), right.n),
        }

    def by_sentence(
        self,
        corpus: TextCorpus,  # noqa: ARG002 - indices say all
        gold: Int[np.ndarray, "S 1"],
        predicted: Int[np.ndarray, "S k"],
        labels: tuple[str, ...],  # noqa: ARG002 - as above
        metric: str,
    ) -> BySentence | None:
        """Whether each example was got wrong; where there are several answers, how many were."""
        if metric != "accuracy":
            return None
        return texts_one_by_one((gold == predicted) & (gold >= 0))


def _macro_f1(
    gold: Int[np.ndarray, " S"], predicted: Int[np.ndarray, " S"], n_labels: int
) -> float:
    """Mean F1 over the classes that are in the file or were predicted.

    One that training never saw has F1 0: it is numbered after the others, not left out.
    """
    apart = np.where(gold < 0, n_labels - 1 - gold, gold)
    return count_tags(apart, predicted, max(n_labels, int(apart.max()) + 1)).macro


class Xnli(Classification):
    """Whether a premise entails a hypothesis, contradicts it, or neither."""

    name: ClassVar[str] = "xnli"


class PawsX(Classification):
    """Whether one sentence is a paraphrase of the other."""

    name: ClassVar[str] = "pawsx"


class Topic(Classification):
    """What a text is about: MLDoc, SIB-200, MasakhaNEWS."""

    name: ClassVar[str] = "topic"
