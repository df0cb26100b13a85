"""One model, one file -> predictions and pooled states, in the same forward pass."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from trainables.data.batching import Windows, collate, evaluation_batches
from trainables.data.subwords import Corpus, Vocabulary
from trainables.similarity.pooling import Pool
from trainables.tasks.base import Task
from trainables.training import Model

PIECE_BUDGET = {"cpu": 4096, "cuda": 65536}
"""Padded pieces in one evaluation batch, by device; part of what a result's last bits depend on."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one pass over a file brought.

    Attributes:
        predicted: Label index of each word; None if no head was asked.
        states: Mean state of each sentence's pieces in every layer (special pieces and context
            left out), shape [layers n d]; None if not asked for.
    """

    predicted: Int[np.ndarray, " W"] | None
    states: Float[np.ndarray, "layers n d"] | None


def look(
    model: Model,
    task: Task | None,
    corpus: Corpus,
    windows: Windows,
    special: Vocabulary,
    *,
    with_states: bool,
) -> Seen:
    """Predict every word and pool every sentence of a file in one pass.

    Args:
        model: Encoder and head; left in eval mode.
        task: Gives the prediction; None to pool only.
        corpus: The file.
        windows: Its windows; predictions of overlapping ones are stitched by ownership.
        special: Special pieces of the encoder's tokenizer.
        with_states: Whether to pool.
    """
    model.encoder.eval()
    model.head.eval()
    predicted = None if task is None else torch.empty(corpus.n_words, dtype=torch.int64)
    pool = Pool(corpus.n_sentences) if with_states else None
    budget = PIECE_BUDGET[model.device.type]
    with torch.inference_mode(), model.autocast():
        for chosen in evaluation_batches(windows.n_pieces + special.n_special, budget=budget):
            batch = collate(corpus, windows, chosen, special)
            output = model.encoder(
                model.put(batch.input_ids),
                model.put(batch.attention_mask),
                with_states=with_states,
            )
            if task is not None and predicted is not None:
                words = output.last[model.put(batch.row), model.put(batch.column)]
                best = task.predict(model.head, words)
                predicted[torch.from_numpy(batch.word)] = best.cpu()
            if pool is not None and output.states is not None:
                pool.add(torch.from_numpy(batch.sentence), output.states, model.put(batch.owned))
    return Seen(
        predicted=None if predicted is None else predicted.numpy(),
        states=None if pool is None else pool.means(),
    )
