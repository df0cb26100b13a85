"""What is trained, and on what: an encoder with a head on it, and sentences with their gold."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.data.batching import Batch, Units, evaluation_batches
from trainables.encoders.base import Encoder, EncoderOutput
from trainables.heads.gold_tags import GoldTags
from trainables.similarity.pooling import masked_sum
from trainables.tasks.base import Readings, Task
from trainables.transfer import put

PIECE_BUDGET = {"cpu": 4096, "cuda": 65536}
"""Padded pieces of a training batch that go forward together; part of what its numbers are."""

LOOK_BUDGET = {"cpu": 1024 * 384, "cuda": 16384 * 768}
"""Numbers in one layer's states when nothing is trained; part of what last bits depend on.

On a CPU a layer's inner states, four times as many, then stay in its cache.
"""

LOOK_WASTE = {"cpu": 192, "cuda": None}
"""Padding at which the next batch begins when nothing is trained: on a CPU a batch more costs about
as much as these pieces, on a GPU far more."""

LEAST_PIECES = 512
"""A wide encoder still gets this many at a time: fewer leave its matrix products too thin."""


def rows_of(batch: Batch, task: Task) -> Int[np.ndarray, " rows"]:
    """Rows of a task's gold that a batch holds: its words or its sentences."""
    return batch.word if task.level == "word" else batch.chosen


@dataclass(frozen=True, slots=True)
class Model:
    """An encoder and the head on it, on one device.

    Attributes:
        encoder: Gives the states.
        head: Reads them.
        device: Where both are.
        precision: Numeric precision of forward passes.
        pooling: Whether the head reads the mean of a text's states in every layer, and of which
            pieces; empty for none.
        tags: Puts gold tags beside the states that the head reads; None for none.
    """

    encoder: Encoder
    head: nn.Module
    device: torch.device
    precision: str = "fp32"
    pooling: Literal["", "pieces", "all"] = ""
    tags: GoldTags | None = None

    @property
    def look_budget(self) -> int:
        """Padded pieces that go forward together when nothing is trained."""
        return max(LEAST_PIECES, LOOK_BUDGET[self.device.type] // self.encoder.hidden_size)

    def look_batches(self, lengths: Int[np.ndarray, " N"]) -> list[Int[np.ndarray, " b"]]:
        """Sentences that go forward together when nothing is trained."""
        return evaluation_batches(
            lengths, budget=self.look_budget, waste=LOOK_WASTE[self.device.type]
        )

    def trainable(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Names and parameters that training moves; the others stay as the ablation left them."""
        modules: list[tuple[str, nn.Module]] = [("encoder.", self.encoder), ("head.", self.head)]
        if self.tags is not None:
            modules.append(("tags.", self.tags))
        for prefix, module in modules:
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    yield prefix + name, parameter

    def read(self, batch: Batch, *, with_states: bool = False) -> tuple[Readings, EncoderOutput]:
        """Send a batch through the encoder; what the head reads of it, and all of it."""
        types = None if batch.token_types is None else self.put(batch.token_types)
        output = self.encoder(
            self.put(batch.input_ids),
            self.put(batch.attention_mask),
            token_type_ids=types,
            with_states=with_states or self.pooling != "",
        )
        readings = Readings(
            words=output.last[self.put(batch.row), self.put(batch.column)],
            sentences=output.last[self.put(batch.first), 0],
            n_words=batch.n_words,
            layers=self._pooled(batch, output) if self.pooling else None,
        )
        if self.tags is not None:
            assert batch.tags is not None  # noqa: S101 - `Materials.units` numbered them
            readings = replace(
                readings,
                words=self.tags.words(readings.words, self.put(batch.tags)),
                sentences=self.tags.sentences(readings.sentences),
            )
        return readings, output

    def _pooled(self, batch: Batch, output: EncoderOutput) -> Float[Tensor, "s layers d"]:
        """Mean state of each text's pieces in every layer, in float32."""
        assert output.states is not None  # noqa: S101 - `read` asked for them
        mask = batch.owned if self.pooling == "pieces" else batch.attention_mask > 0
        counted = self.put(mask)
        sums = torch.stack([masked_sum(state, counted) for state in output.states], dim=1)
        means: Tensor = (sums / counted.sum(dim=1)[:, None, None])[self.put(batch.first)]
        return means

    def put(self, array: np.ndarray) -> Tensor:
        """An array on the model's device; on a GPU the host does not wait until it is there."""
        return put(array, self.device)

    def autocast(self) -> AbstractContextManager[object]:
        """The precision of forward passes."""
        if self.precision == "fp32":
            return nullcontext()
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float16
        return torch.autocast(self.device.type, dtype=dtype)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is trained on: sentences, and the gold indices of each word or sentence."""

    units: Units
    gold: Int[np.ndarray, "rows k"]
