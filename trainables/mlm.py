"""Masked language modelling: what an encoder can learn from raw text alone.

Of every line some pieces are chosen; 8 of 10 of them are hidden, 1 of 10 is replaced by any piece,
1 of 10 stays, and the encoder says which they were (Devlin et al. 2019, arXiv:1810.04805, 3.1).
Every random draw of step k comes from a stream named by (seed, purpose, k), as in fine-tuning.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from trainables.data.batching import training_batches
from trainables.encoders.base import Encoder
from trainables.seeding import generator, stream

HIDDEN, REPLACED = 0.8, 0.1
"""Of the chosen pieces: share that the mask stands for, share that any piece stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MlmSettings:
    """How raw text is learnt.

    Attributes:
        steps: Optimiser steps.
        batch_size: Lines a step.
        learning_rate: Peak; rises linearly over `warmup`, then falls linearly to 0.
        warmup: Share of the steps.
        chosen: Share of the pieces that must be guessed.
        weight_decay: Decoupled; not on biases and norms.
        clip_norm: Largest gradient norm.
        seed: Of order and masks.
    """

    steps: int
    batch_size: int = 64
    learning_rate: float = 1e-3
    warmup: float = 0.06
    chosen: float = 0.15
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    seed: int = 0

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        warm = math.ceil(self.warmup * self.steps)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (self.steps - step) / max(1, self.steps - warm)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskPieces:
    """The ids that masking needs.

    Attributes:
        pad: Fills short lines.
        mask: Stands for a hidden piece.
        special: Never chosen and never put in place of another: padding, mask, ends, unknown.
        n_pieces: Size of the vocabulary.
    """

    pad: int
    mask: int
    special: tuple[int, ...]
    n_pieces: int


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Some lines with a part of their pieces hidden; `gold` are the `chosen` ones in order."""

    input_ids: Int[np.ndarray, "b t"]
    attention_mask: Int[np.ndarray, "b t"]
    chosen: Bool[np.ndarray, "b t"]
    gold: Int[np.ndarray, " n"]


def masked(
    lines: Sequence[Int[np.ndarray, " _"]],
    pieces: MaskPieces,
    share: float,
    rng: np.random.Generator,
) -> MaskedBatch:
    """Pad some lines and hide a share of their pieces, at least one in the batch.

    Args:
        lines: Ids of each line, special pieces included.
        pieces: The ids that masking needs.
        share: Of the pieces that are not special, how many must be guessed.
        rng: Draws.
    """
    whole = np.full((len(lines), max(map(len, lines))), pieces.pad, dtype=np.int64)
    mask = np.zeros_like(whole)
    for row, line in enumerate(lines):
        whole[row, : len(line)] = line
        mask[row, : len(line)] = 1
    is_plain = (mask == 1) & ~np.isin(whole, pieces.special)
    chosen = is_plain & (rng.random(whole.shape) < share)
    if not chosen.any():
        row, column = (int(at[0]) for at in np.nonzero(is_plain))
        chosen[row, column] = True
    fate = rng.random(whole.shape)
    plain = np.setdiff1d(np.arange(pieces.n_pieces), pieces.special)
    hidden = chosen & (fate < HIDDEN)
    replaced = chosen & ~hidden & (fate < HIDDEN + REPLACED)
    ids = np.where(hidden, pieces.mask, whole)
    ids = np.where(replaced, rng.choice(plain, size=whole.shape), ids)
    return MaskedBatch(ids, mask, chosen, whole[chosen])


class MlmHead(nn.Module):
    """Says which piece stood where: a dense layer, then the encoder's table of pieces (tied)."""

    def __init__(self, encoder: Encoder, n_pieces: int, seed: int) -> None:
        """Draw the head's own weights from the seed."""
        super().__init__()
        self.dense = nn.Linear(encoder.hidden_size, encoder.hidden_size)
        self.norm = nn.LayerNorm(encoder.hidden_size)
        self.bias = nn.Parameter(torch.zeros(n_pieces))
        with torch.no_grad():
            deviation = encoder.initializer_range
            self.dense.weight.normal_(0.0, deviation, generator=generator(seed, "mlm-head"))
            self.dense.bias.zero_()

    def forward(
        self, states: Float[Tensor, "n d"], table: Float[Tensor, "v d"]
    ) -> Float[Tensor, "n v"]:
        """Scores of all pieces for each hidden place."""
        found: Tensor = functional.linear(
            self.norm(functional.gelu(self.dense(states))), table, self.bias
        )
        return found


@dataclass(slots=True)
class MlmTraining:
    """One training from raw text; may go on with a deeper encoder (see `MlmTraining.deepened`).

    Attributes:
        encoder: Trained in place.
        head: Thrown away in the end.
        lines: Ids of each line of the text, special pieces included.
        pieces: The ids that masking needs.
        settings: Steps, rates, masks.
        step: Steps taken.
    """

    encoder: Encoder
    head: MlmHead
    lines: Sequence[Int[np.ndarray, " _"]]
    pieces: MaskPieces
    settings: MlmSettings
    step: int = 0
    optimiser: torch.optim.AdamW = field(init=False)
    _batches: Iterator[Int[np.ndarray, " b"]] = field(init=False)

    def __post_init__(self) -> None:
        self._batches = self._order()
        self._start_optimiser()

    def run(self, until: int, report: Callable[[int, float], None] = lambda *_: None) -> None:
        """Take steps up to the `until`-th.

        Args:
            until: Where to stop; at most `settings.steps`.
            report: Hears of every step and its loss (in nats a hidden piece).
        """
        self.encoder.train()
        while self.step < until:
            report(self.step, self._step())
            self.step += 1
        self.encoder.eval()

    def deepen(self, encoder: Encoder) -> None:
        """Go on with another encoder; the optimiser starts afresh."""
        self.encoder = encoder
        self._start_optimiser()

    def _start_optimiser(self) -> None:
        parameters = [*self.encoder.parameters(), *self.head.parameters()]
        settings = self.settings
        self.optimiser = torch.optim.AdamW(
            [
                {
                    "params": [p for p in parameters if p.ndim > 1],
                    "weight_decay": settings.weight_decay,
                },
                {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
            ],
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-6,
            fused=True,
        )

    def _order(self) -> Iterator[Int[np.ndarray, " b"]]:
        """Batches of lines without end, every line once an epoch."""
        lengths = np.array([len(line) for line in self.lines])
        for epoch in count():
            yield from training_batches(
                lengths,
                batch_size=self.settings.batch_size,
                seed=self.settings.seed,
                epoch=epoch,
                how="bucketed",
            )

    def _step(self) -> float:
        settings = self.settings
        rng = np.random.default_rng(stream(settings.seed, "mask", self.step))
        torch.manual_seed(stream(settings.seed, "dropout", self.step))
        batch = masked(
            [self.lines[i] for i in next(self._batches)], self.pieces, settings.chosen, rng
        )
        for group in self.optimiser.param_groups:
            group["lr"] = settings.rate(self.step)
        device = self.head.bias.device
        output = self.encoder(
            torch.from_numpy(batch.input_ids).to(device),
            torch.from_numpy(batch.attention_mask).to(device),
        )
        table = self.encoder.input_embedding.weight
        assert isinstance(table, Tensor)  # noqa: S101 - it was found to be an embedding
        scores = self.head(output.last[torch.from_numpy(batch.chosen).to(device)], table)
        loss = functional.cross_entropy(scores, torch.from_numpy(batch.gold).to(device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call] # torch
        nn.utils.clip_grad_norm_(
            [*self.encoder.parameters(), *self.head.parameters()], settings.clip_norm
        )
        self.optimiser.step()
        return loss.item()
