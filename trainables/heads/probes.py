"""One head a layer, side by side: what does each layer know?"""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Probes(nn.Module):
    """Independent heads, the l-th over state l; no gradient passes between them."""

    def __init__(self, heads: Iterable[nn.Module]) -> None:
        """Put the heads side by side, that of the embeddings first."""
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, layers: Float[Tensor, "s layers d"]) -> Float[Tensor, "s layers labels"]:
        """Score every label for every text, layer by layer."""
        logits = [head(layers[:, layer]) for layer, head in enumerate(self.heads)]
        return torch.stack(logits, dim=1)
