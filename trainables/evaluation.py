"""One model, one file -> predictions and pooled states, in the same forward pass."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from trainables.data.batching import Units
from trainables.model import Model, rows_of
from trainables.shortage import by_halves
from trainables.similarity.pooling import Pool
from trainables.tasks.base import Task


@dataclass(frozen=True, slots=True)
class Seen:
    """What one pass over a file brought.

    Attributes:
        predicted: Predicted indices of each word or sentence; None if no head was asked.
        states: Mean state of each sentence's pieces in every layer (special pieces and context
            left out), shape [layers n d]; None if not asked for.
    """

    predicted: Int[np.ndarray, "rows k"] | None
    states: Float[np.ndarray, "layers n d"] | None


def look(model: Model, task: Task | None, units: Units, *, with_states: bool) -> Seen:
    """Predict every word or sentence of a file and pool every sentence, in one pass.

    A batch for which memory runs out is taken in halves.

    Args:
        model: Encoder and head; left in eval mode.
        task: Gives the prediction; None to pool only.
        units: The file. Windows of a long sentence are stitched by ownership of their words.
        with_states: Whether to pool.
    """
    model.encoder.eval()
    model.head.eval()
    found: list[tuple[np.ndarray, np.ndarray]] = []
    pool = Pool(len(units.lengths)) if with_states else None

    def run(chosen: Int[np.ndarray, " s"]) -> None:
        batch = units.collate(chosen)
        readings, output = model.read(batch, with_states=with_states)
        predicted = None if task is None else task.predict(model.head, readings).cpu().numpy()
        if pool is not None and output.states is not None:
            pool.add(torch.from_numpy(batch.sentence), output.states, model.put(batch.owned))
        if task is not None and predicted is not None:
            found.append((rows_of(batch, task), predicted))

    batches = model.look_batches(units.lengths)
    with torch.inference_mode(), model.autocast():
        by_halves(batches, units.lengths, run)
    return Seen(
        predicted=_in_order(found) if task is not None else None,
        states=None if pool is None else pool.means(),
    )


def _in_order(found: list[tuple[np.ndarray, np.ndarray]]) -> Int[np.ndarray, "rows k"]:
    rows = np.concatenate([rows for rows, _ in found])
    values = np.concatenate([values for _, values in found])
    return values[np.argsort(rows, kind="stable")]
