"""What a task is: a label inventory, a head, a loss, a prediction, a score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.metrics.by_sentence import BySentence
from trainables.spec import TrialOptions


@dataclass(frozen=True, slots=True)
class Readings:
    """What a head reads of a batch; s sentences, w words in the order of the sentences.

    Attributes:
        words: Last-layer state of each word's label piece.
        sentences: Last-layer state of the first special piece of each sentence ([CLS]); the root
            of a tree, the whole of a text.
        n_words: Words of each sentence.
        layers: Mean state of each text's pieces in every layer; None where the model does not pool.
    """

    words: Float[Tensor, "w d"]
    sentences: Float[Tensor, "s d"]
    n_words: Int[np.ndarray, " s"]
    layers: Float[Tensor, "s layers d"] | None = None


Contents_contra = TypeVar("Contents_contra", contravariant=True)
"""What a file holds: a `Corpus` of words or a `TextCorpus`."""


@runtime_checkable  # so that shapes and types can be checked in tests
class TaskOn(Protocol[Contents_contra]):
    """One kind of prediction, for every word or for every sentence (`level`).

    The loop knows no labels: `gold` turns a corpus into rows of indices, one row a word or a
    sentence, and everything else works on those rows. A row whose first index is negative has no
    label to learn; it still counts in the denominator of a score.
    """

    name: ClassVar[str]
    metric: ClassVar[str]
    level: ClassVar[Literal["word", "sentence"]]

    def inventory(self, train: Contents_contra) -> tuple[str, ...]:
        """The labels of the training file, sorted; others are never predicted.

        Raises:
            DataError: the file has no labels of this kind.
        """
        ...

    def gold(self, corpus: Contents_contra, labels: tuple[str, ...]) -> Int[np.ndarray, "rows k"]:
        """Indices of each word or sentence; -1 for a label outside the inventory or missing."""
        ...

    def head(
        self, hidden_size: int, labels: tuple[str, ...], options: TrialOptions, seed: int
    ) -> nn.Module:
        """A new head, initialised from the seed's own stream."""
        ...

    def loss(
        self, head: nn.Module, readings: Readings, gold: Int[Tensor, "rows k"]
    ) -> Float[Tensor, ""]:
        """Sum of the losses of labelled rows; the loop divides by their number."""
        ...

    def predict(self, head: nn.Module, readings: Readings) -> Int[Tensor, "rows k"]:
        """Predicted indices, shaped as `gold`."""
        ...

    def score(
        self,
        corpus: Contents_contra,
        gold: Int[np.ndarray, "rows k"],
        predicted: Int[np.ndarray, "rows k"],
        labels: tuple[str, ...],
    ) -> Mapping[str, tuple[float, int]]:
        """Metric name -> (fraction, items in the denominator), over a whole corpus."""
        ...

    def by_sentence(
        self,
        corpus: Contents_contra,
        gold: Int[np.ndarray, "rows k"],
        predicted: Int[np.ndarray, "rows k"],
        labels: tuple[str, ...],
        metric: str,
    ) -> BySentence | None:
        """What each sentence adds to one of the metrics; None for one that is no such ratio.

        The counts give the very value of `score`, up to rounding.
        """
        ...


Task = TaskOn[Any]
"""A task, whatever it reads."""
