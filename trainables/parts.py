"""One batch, forward and backward, in as small parts as memory asks for.

A batch is always cut where one long sentence would pad all others (`forward_parts`): that is part
of what its numbers are. What memory forces beyond that is not: smaller parts add up to the same
gradients, and draw the same dropout (`trainables.draws`).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from trainables.data.batching import Batch, forward_parts
from trainables.draws import Draws, Extent
from trainables.model import PIECE_BUDGET, Lesson, Model, rows_of
from trainables.tasks.base import Task


@dataclass(slots=True)
class Parts:
    """How a training's batches go through its model.

    Attributes:
        model: Gets the gradients.
        task: Gives the loss.
        lesson: What batches are cut from.
        most: Most sentences of a part; 0 for as many as a batch has.
        forced: Sentences in the largest part of the step that memory cut smallest; 0 for none.
    """

    model: Model
    task: Task
    lesson: Lesson
    most: int = 0
    forced: int = field(init=False, default=0)
    _most_pieces: float = field(init=False, default=np.inf)
    _tried: tuple[int, int] = field(init=False, default=(0, 0))

    def backward(
        self, chosen: Int[np.ndarray, " b"], scaler: torch.amp.GradScaler
    ) -> tuple[list[Tensor], int]:
        """Add the gradients of the batch's mean loss to the parameters.

        Args:
            chosen: Sentences of the batch.
            scaler: Scales the loss for fp16.

        Returns:
            The summed loss of each part, on the device; and the labelled rows behind them. No
            gradients and no losses where nothing is labelled.
        """
        units = self.lesson.units
        wholes = [
            chosen[places]
            for places in forward_parts(
                units.lengths[chosen], size=len(chosen), budget=PIECE_BUDGET[self.model.device.type]
            )
        ]
        labels = self.lesson.gold[:, 0]
        batches = [units.collate(whole) for whole in wholes]
        n_labelled = sum(int((labels[rows_of(b, self.task)] >= 0).sum()) for b in batches)
        if n_labelled == 0:
            return [], 0
        return [
            self._part(part, draws, scaler, n_labelled)
            for whole, batch in zip(wholes, batches, strict=True)
            for part, draws in self._cut(whole, batch)
        ], n_labelled

    def shrink(self) -> bool:
        """Use smaller parts from now on; False if the last one tried was a single sentence."""
        n_sentences, n_pieces = self._tried
        self._most_pieces = n_pieces / 2
        return n_sentences > 1

    def _cut(
        self, whole: Int[np.ndarray, " s"], batch: Batch
    ) -> Iterator[tuple[Batch, AbstractContextManager[object]]]:
        """What goes forward at a time, and the block in which it draws as the whole would."""
        units = self.lesson.units
        parts = forward_parts(
            units.lengths[whole], size=self.most or len(whole), budget=self._most_pieces
        )
        if len(parts) == 1:
            yield batch, nullcontext()
            return
        largest = max(len(part) for part in parts)
        self.forced = min(self.forced or largest, largest)
        drawn = _generators(self.model.device)
        extent, before = Extent.of(batch), Extent()
        for places in parts:
            part = units.collate(whole[places])
            _put_back(drawn)
            yield part, Draws(extent, Extent.of(part), before)
            before = before.after(Extent.of(part))

    def _part(
        self,
        part: Batch,
        draws: AbstractContextManager[object],
        scaler: torch.amp.GradScaler,
        n_labelled: int,
    ) -> Tensor:
        """Add a part's share of the gradients; its summed loss."""
        self._tried = len(part.chosen), int(part.input_ids.size)
        gold = self.lesson.gold[rows_of(part, self.task)]
        with self.model.autocast(), draws:
            readings, _ = self.model.read(part)
            loss = self.task.loss(self.model.head, readings, self.model.put(gold))
        scaler.scale(loss / n_labelled).backward()  # type: ignore[no-untyped-call] # torch
        return loss.detach().double()


def _generators(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Where the global generators stand."""
    of_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return torch.get_rng_state(), of_device


def _put_back(drawn: tuple[Tensor, Tensor | None]) -> None:
    of_cpu, of_device = drawn
    torch.set_rng_state(of_cpu)
    if of_device is not None:
        torch.cuda.set_rng_state(of_device)
