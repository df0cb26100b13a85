"""An embedding of each word's gold UPOS beside its state, as a parser of the second paper has it.

Trained on the source's gold tags and fed those of the target (PROTOCOLS 1.6): an oracle, not a
system. The root and words without a tag have zeros there.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.data.conllu import UPOS_TAGS
from trainables.seeding import generator

WIDTH = 100
"""Features of a tag, as published."""

NAMES = tuple(sorted(UPOS_TAGS - {"_", "CONJ"}))
"""The 17 tags of UD version 2, numbered from 1; 0 is no tag."""


def numbers(upos: Sequence[str]) -> Int[np.ndarray, " W"]:
    """The number of each word's tag; UD version 1's CONJ is CCONJ."""
    number = {name: i for i, name in enumerate(NAMES, start=1)}
    number["CONJ"] = number["CCONJ"]
    return np.fromiter((number.get(tag, 0) for tag in upos), np.int64, len(upos))


class GoldTags(nn.Module):
    """Widens the states of words by what they are, those of sentences by zeros."""

    def __init__(self, seed: int) -> None:
        """Draw the embedding, standard normal as `torch.nn.Embedding`, from its own stream."""
        super().__init__()
        self.embedding = nn.Embedding(len(NAMES) + 1, WIDTH, padding_idx=0)
        with torch.no_grad():
            self.embedding.weight.normal_(generator=generator(seed, "head", "gold_tags"))
            self.embedding.weight[0] = 0

    def words(self, states: Float[Tensor, "w d"], tags: Int[Tensor, " w"]) -> Float[Tensor, "w d2"]:
        """States of words with their tags beside them."""
        return torch.cat([states, self.embedding(tags).to(states.dtype)], dim=1)

    def sentences(self, states: Float[Tensor, "s d"]) -> Float[Tensor, "s d2"]:
        """States of sentences, which have no tag."""
        return nn.functional.pad(states, (0, WIDTH))
