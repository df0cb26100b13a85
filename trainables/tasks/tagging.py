"""What all tagging has in common: one label a word, one linear layer, cross-entropy."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.heads.tagger import Tagger
from trainables.spec import TrialOptions
from trainables.tasks.base import Readings


class Tagging:
    """Head, loss and prediction of a task with one label a word."""

    level: ClassVar[Literal["word"]] = "word"

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
        """The label of the highest logit; the first one where several are equal."""
        best: Tensor = head(readings.words).argmax(dim=-1, keepdim=True)
        return best


def indices(
    corpus: Corpus, tags: Sequence[str], labels: Sequence[str], what: str
) -> Int[np.ndarray, " W"]:
    """Index of each word's tag in `labels`; -1 for one that is not among them.

    Raises:
        DataError: some words have no tag column; `what` names it in the message.
    """
    if len(tags) != corpus.n_words:
        raise DataError(
            corpus.location,
            None,
            f"{len(tags)} of {corpus.n_words} words have {what}",
            "Use a file in which every word has one.",
        )
    index = {label: i for i, label in enumerate(labels)}
    return np.fromiter((index.get(tag, -1) for tag in tags), np.int64, corpus.n_words)


def refuse_empty(corpus: Corpus) -> None:
    """Refuse to score a file without words.

    Raises:
        DataError: there are none.
    """
    if corpus.n_words == 0:
        raise DataError(corpus.location, None, "there are no words", "Use a file with sentences.")
