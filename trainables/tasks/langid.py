"""Which language a text is in: one linear probe a layer on a frozen encoder (PROTOCOLS 1.9)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainables.data.texts import TextCorpus
from trainables.metrics.accuracy import count_right
from trainables.metrics.by_sentence import BySentence
from trainables.tasks.base import Readings
from trainables.tasks.classification import Classification


class LanguageIdentification(Classification):
    """A text's language, told by every layer on its own.

    `accuracy@l` is that of the probe on state l (0 is the embeddings); `accuracy` is their mean.
    `head` is what one layer gets; the head of the trial is a `heads.probes.Probes` of them.
    """

    name: ClassVar[str] = "langid"

    def loss(
        self, head: nn.Module, readings: Readings, gold: Int[Tensor, "s 1"]
    ) -> Float[Tensor, ""]:
        """Cross-entropy, summed over texts and layers: each layer's gradient is its own."""
        logits = head(readings.layers).float()
        target = gold.clamp(min=-1).expand(logits.shape[:2])
        return cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=-1, reduction="sum"
        )

    def predict(self, head: nn.Module, readings: Readings) -> Int[Tensor, "s layers"]:
        """The language of each layer's highest logit; the first one where several are equal."""
        best: Tensor = head(readings.layers).argmax(dim=-1)
        return best

    def score(
        self,
        corpus: TextCorpus,
        gold: Int[np.ndarray, "S 1"],
        predicted: Int[np.ndarray, "S layers"],
        labels: tuple[str, ...],  # noqa: ARG002 - indices say all
    ) -> Mapping[str, tuple[float, int]]:
        """Accuracy of each layer over every text of the file, and their mean."""
        n = corpus.n_sentences
        layers = [count_right(gold[:, 0], column).value for column in predicted.T]
        return {
            "accuracy": (sum(layers) / len(layers), n),
            **{f"accuracy@{layer}": (value, n) for layer, value in enumerate(layers)},
        }

    def by_sentence(
        self,
        corpus: TextCorpus,
        gold: Int[np.ndarray, "S 1"],
        predicted: Int[np.ndarray, "S layers"],
        labels: tuple[str, ...],
        metric: str,
    ) -> BySentence | None:
        """How many layers got each text wrong; for `accuracy@l`, whether that one did."""
        name, _, layer = metric.partition("@")
        answers = predicted[:, [int(layer)]] if layer else predicted
        return super().by_sentence(corpus, gold, answers, labels, name)
