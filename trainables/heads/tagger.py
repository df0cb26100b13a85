"""One linear layer over each word's label piece: the tagging head of all four studies."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainables.seeding import generator


class Tagger(nn.Module):
    """Dropout, then a linear layer: states of words in, logits out."""

    def __init__(self, hidden_size: int, n_labels: int, *, dropout: float, seed: int) -> None:
        """Initialise as `torch.nn.Linear` does, from the seed's own stream.

        Args:
            hidden_size: Width of the encoder.
            n_labels: Size of the label inventory.
            dropout: Probability in [0, 1); the first paper's code has none here.
            seed: Of the trial; the head starts alike in all ablations of a seed (D-03).
        """
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden_size, n_labels)
        bound = 1 / math.sqrt(hidden_size)
        with torch.no_grad():
            for name, parameter in self.linear.named_parameters():
                parameter.uniform_(-bound, bound, generator=generator(seed, "head", name))

    def forward(self, words: Float[Tensor, "w d"]) -> Float[Tensor, "w labels"]:
        """Score every label for every word."""
        logits: Tensor = self.linear(self.dropout(words))
        return logits
