"""What a task is: a label inventory, a head, a loss, a prediction, a score."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.data.subwords import Corpus
from trainables.spec import TrialOptions


class Task(Protocol):
    """One kind of prediction over the words of a sentence.

    The loop knows words, never labels: `gold` turns a corpus into one index a word, and everything
    else works on those.
    """

    name: ClassVar[str]
    metric: ClassVar[str]

    def inventory(self, train: Corpus) -> tuple[str, ...]:
        """The labels of the training file, sorted; others are never predicted.

        Raises:
            DataError: the file has no labels of this kind.
        """
        ...

    def gold(self, corpus: Corpus, labels: tuple[str, ...]) -> Int[np.ndarray, " W"]:
        """Index of each word's label; -1 for one outside the inventory or missing."""
        ...

    def head(
        self, hidden_size: int, labels: tuple[str, ...], options: TrialOptions, seed: int
    ) -> nn.Module:
        """A new head, initialised from the seed's own stream."""
        ...

    def loss(
        self, head: nn.Module, words: Float[Tensor, "w d"], gold: Int[Tensor, " w"]
    ) -> Float[Tensor, ""]:
        """Sum of the losses of labelled words; the loop divides by their number."""
        ...

    def predict(self, head: nn.Module, words: Float[Tensor, "w d"]) -> Int[Tensor, " w"]:
        """The label index of each word."""
        ...

    def score(
        self,
        corpus: Corpus,
        gold: Int[np.ndarray, " W"],
        predicted: Int[np.ndarray, " W"],
        labels: tuple[str, ...],
    ) -> Mapping[str, tuple[float, int]]:
        """Metric name -> (fraction, items in the denominator), over a whole corpus."""
        ...
