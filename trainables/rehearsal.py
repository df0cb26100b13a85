"""One step at the longest batch and one look at the fullest: what a trial will need of memory."""

import numpy as np
import torch

from trainables.ablations.base import apply
from trainables.data.batching import evaluation_batches
from trainables.encoders.pretrained import load_encoder
from trainables.finetuning import begin, untrained, with_head
from trainables.materials import Materials
from trainables.memory import peak
from trainables.model import Model
from trainables.registry import LEARNERS, TASKS, load
from trainables.spec import Request, TrialSpec, Workspace

_ADAM = 2
"""Moments that the optimiser keeps of each weight once it has taken a step."""


def rehearse(spec: TrialSpec, request: Request, workspace: Workspace) -> int:
    """Do what of a trial needs most memory, and nothing else; no number comes of it.

    Returns:
        Bytes at the peak, those of the optimiser's moments included.
    """
    encoder = load_encoder(spec.encoder)
    materials = Materials(spec, workspace, encoder.max_positions)
    apply(encoder, spec.ablation, spec=spec)
    encoder.to(materials.device)
    moments = 0
    if spec.train is None or spec.task in LEARNERS:
        model = untrained(encoder, materials).model
    else:
        task = load("task", spec.task, TASKS)()
        labels = task.inventory(materials.corpus(spec.train))
        model = with_head(encoder, task, labels, materials)
        training, table = begin(model, task, labels, materials)
        training.rehearse()
        table.release()
        moments = _ADAM * sum(p.numel() * p.element_size() for _, p in model.trainable())
    _look_once(model, request, materials)
    return peak(materials.device) + moments


def _look_once(model: Model, request: Request, materials: Materials) -> None:
    """Send the fullest evaluation batch there is through the encoder."""
    parallel = request.similarity.parallel if request.similarity is not None else ()
    files = [materials.units(ref) for ref in {*request.targets, *parallel}]
    if not files:
        return
    budget = model.look_budget
    fullest = max(files, key=lambda units: min(budget, int(np.sum(units.lengths))))
    model.encoder.eval()
    with torch.inference_mode(), model.autocast():
        batch = fullest.collate(evaluation_batches(fullest.lengths, budget=budget)[0])
        model.read(batch, with_states=bool(parallel))
