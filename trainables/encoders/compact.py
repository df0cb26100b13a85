"""Train only the rows of the input embedding that the data use: same numbers, smaller steps.

With a big vocabulary the optimiser spends most of a step on rows that no piece of the data looks
up. Such a row has gradient 0, so its Adam moments stay 0 and its update is 0 / (0 + eps) = 0:
leaving it out changes no bit. Decoupled weight decay is the one thing that does reach it; it
multiplies the row by a number known beforehand, `decay_factor`.
"""

import math
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from trainables.encoders.base import Encoder


class CompactTable(nn.Module):
    """An embedding of few pieces that is still looked up by the ids of the whole vocabulary."""

    slot: Tensor

    def __init__(self, whole: nn.Embedding, ids: Int[Tensor, " n"]) -> None:
        """Copy the rows `ids` of `whole`.

        Args:
            whole: The full table; not changed.
            ids: Distinct ids, sorted.
        """
        super().__init__()
        device = whole.weight.device
        ids = ids.to(device)
        slot = torch.full((whole.num_embeddings,), len(ids), dtype=torch.int64, device=device)
        slot[ids] = torch.arange(len(ids), device=device)
        self.register_buffer("slot", slot, persistent=False)
        self.weight = nn.Parameter(
            whole.weight.detach()[ids].clone(), requires_grad=whole.weight.requires_grad
        )
        padding = whole.padding_idx
        at = None if padding is None else int(slot[padding])
        self.padding_idx = None if at == len(ids) else at

    def forward(self, input_ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        """Look pieces up.

        Raises:
            IndexError: an id has no row here. On a GPU this is a device-side assertion instead, as
                looking would make every step wait for the device.
        """
        slots = self.slot[input_ids]
        if slots.device.type == "cpu":
            absent = slots == len(self.weight)
            if absent.any():
                first = int(input_ids[absent][0])
                raise IndexError(
                    f"piece id {first} is not in the compact embedding of {len(self.weight)} of "
                    f"{len(self.slot)} rows. Give it the ids of all data that it is to read."
                )
        return functional.embedding(slots, self.weight, padding_idx=self.padding_idx)


class CompactEmbedding:
    """An encoder whose input embedding holds only some rows, until `release`.

    Does nothing (and has no `ids`) when no ids are given, when the embedding is frozen, or when it
    is more than a plain table. Clipping by gradient norm may differ from the full table in the last
    bit, as the squares of fewer zeros are summed.

    Attributes:
        ids: Rows in use, sorted; row i of the compact table is piece `ids[i]`.
    """

    ids: Int[Tensor, " n"]

    def __init__(self, encoder: Encoder, ids: Int[np.ndarray, " k"] | Int[Tensor, " k"]) -> None:
        """Swap the table.

        Args:
            encoder: Changed until `release`; make the optimiser afterwards.
            ids: All ids that will be looked up, in any order, repeats allowed.

        Raises:
            IndexError: an id is not in the vocabulary.
        """
        whole = encoder.input_embedding
        assert isinstance(whole, nn.Embedding)  # noqa: S101 - Encoder checks it; not compact twice
        self._encoder, self._whole = encoder, whole
        wanted = torch.from_numpy(np.unique(np.asarray(ids, dtype=np.int64)))
        if len(wanted) and not 0 <= int(wanted[0]) <= int(wanted[-1]) < whole.num_embeddings:
            bad = int(wanted[0]) if int(wanted[0]) < 0 else int(wanted[-1])
            raise IndexError(
                f"piece id {bad} is outside the encoder's vocabulary of {whole.num_embeddings}. "
                "Check that tokenizer and weights belong together."
            )
        self._table: CompactTable | None = None
        is_plain = type(whole) is nn.Embedding  # a subclass may scale or add; leave it alone
        self.ids = wanted if whole.weight.requires_grad and is_plain else wanted[:0]
        if len(self.ids):
            self._table = CompactTable(whole, self.ids)
            encoder.set_input_embedding(self._table)

    def release(self, unused_factor: float = 1.0) -> None:
        """Put the trained rows back into the whole table, and the whole table into the encoder.

        Args:
            unused_factor: What weight decay did to the other rows: see `decay_factor`.
        """
        if self._table is None:
            return
        weight, rows = self._whole.weight, self._table.weight
        with torch.no_grad():
            if weight.device != rows.device:
                self._whole.to(rows.device)
                weight = self._whole.weight
            if unused_factor != 1.0:
                weight.mul_(unused_factor)
            weight[self.ids.to(rows.device)] = rows.detach()
        self._encoder.set_input_embedding(self._whole)
        self._table = None


def decay_factor(rates: Iterable[float], weight_decay: float) -> float:
    """What decoupled weight decay leaves of a weight without gradient: product of 1 - rate * decay.

    Args:
        rates: Learning rate of every optimiser step, in order.
        weight_decay: AdamW's.
    """
    return math.prod(1.0 - rate * weight_decay for rate in rates)
