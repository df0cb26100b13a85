"""From states of pieces to one vector a sentence, in the forward pass that predicts anyway."""

from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int


def masked_sum(
    state: Float[torch.Tensor, "b t d"], mask: Bool[torch.Tensor, "b t"]
) -> Float32[torch.Tensor, "b d"]:
    """Sum the pieces that count, in float32 whatever the states' type (float64 stays).

    A product with the mask: one pass over the states and no copy of them. States outside the mask
    must be finite all the same.
    """
    with torch.autocast(state.device.type, enabled=False):  # it would sum in half precision
        wide = state if state.dtype == torch.float64 else state.float()
        return torch.bmm(mask[:, None, :].to(wide.dtype), wide)[:, 0]


class Pool:
    """Means of the states of a file's sentences, gathered batch by batch.

    A sentence may come in several windows, in one batch or in many: sums and counts are kept apart
    until the end. Windows are added up in the order in which they came, so equal batches give equal
    means; nothing is scattered atomically, and nothing waits for the device before `means`.
    """

    def __init__(self, n_sentences: int) -> None:
        """Start empty.

        Args:
            n_sentences: Sentences in the file; each must come at least once.
        """
        self._n = n_sentences
        self._indices: list[torch.Tensor] = []
        self._sums: list[torch.Tensor] = []
        self._counts: list[torch.Tensor] = []

    def add(
        self,
        sentence_index: Int[torch.Tensor, "b"],
        states: Iterable[Float[torch.Tensor, "b t d"]],
        mask: Bool[torch.Tensor, "b t"],
    ) -> None:
        """Take in one batch of windows.

        Args:
            sentence_index: The sentence of each window, on any device.
            states: One tensor a layer, embeddings first.
            mask: Pieces that count: no special pieces, no padding, no context that another window
                counts.
        """
        sums = torch.stack([masked_sum(state.detach(), mask) for state in states])
        counts = mask.sum(dim=1)  # before anything is noted: memory may run out
        self._indices.append(sentence_index)
        self._sums.append(sums)
        self._counts.append(counts)

    def means(self) -> Float32[np.ndarray, "layers n d"]:
        """Divide sums by counts; sums over windows are float64.

        Raises:
            ValueError: a sentence has no piece that counts, or nothing was added.
        """
        if not self._sums:
            raise ValueError("no batch was added: there is nothing to take a mean of.")
        index = torch.cat([part.cpu() for part in self._indices])
        sums = torch.cat([part.cpu() for part in self._sums], dim=1).double()
        counts = torch.zeros(self._n, dtype=torch.int64)
        counts.index_add_(0, index, torch.cat([part.cpu() for part in self._counts]))
        empty = torch.nonzero(counts == 0)[:, 0].tolist()
        if empty:
            raise ValueError(
                f"{len(empty)} of {self._n} sentences have no piece to take a mean of; the first "
                f"is sentence {empty[0]} (from 0). Map words without pieces to the unknown piece."
            )
        total = torch.zeros(len(sums), self._n, sums.shape[2], dtype=torch.float64)
        total.index_add_(1, index, sums)  # on the CPU, where it adds row after row
        means: Float32[np.ndarray, "layers n d"] = (total / counts[:, None]).float().numpy()
        return means
