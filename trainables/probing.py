"""Learn on a frozen encoder: its states are read once, then one linear probe a layer is trained.

The probes are as independent as separate trainings would be: each has its own gradient, its own
rate (`schedule = "plateau"` halves it by the layer's own dev accuracy) and its own best epoch.
Nothing is checkpointed or kept, as training a probe takes less than reading the states.
"""

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.data.batching import Units, training_batches
from trainables.encoders.base import Encoder
from trainables.finetuning import Learnt, as_scores
from trainables.heads.probes import Probes
from trainables.materials import Materials
from trainables.metrics.accuracy import count_right
from trainables.model import Model
from trainables.seeding import stream
from trainables.shortage import by_halves
from trainables.spec import CurvePoint, TrialSpec
from trainables.tasks.base import Readings, Task
from trainables.training import learning_rate


def probe_layers(
    encoder: Encoder,
    task: Task,
    materials: Materials,
    *,
    keep: bool,  # noqa: ARG001 - a later request trains the probes again, to the same bits
) -> Generator[CurvePoint, bool, Learnt]:
    """Train one probe a layer, embeddings included.

    Args:
        encoder: Ablated, on the device; no parameter of it changes.
        task: What to predict from `Readings.layers`.
        materials: Files and device of the trial.
        keep: Without effect.

    Yields:
        One point an epoch, with means over the layers; send False to stop.
    """
    spec = materials.spec
    assert spec.train is not None  # noqa: S101 - a probe of similarity does not get here
    assert spec.dev is not None  # noqa: S101 - nor a study without dev data
    train, dev = materials.corpus(spec.train), materials.corpus(spec.dev)
    labels = task.inventory(train)
    encoder.requires_grad_(requires_grad=False)
    heads = [
        task.head(encoder.hidden_size, labels, spec.options, spec.seed)
        for _ in range(encoder.n_layers + 1)
    ]
    probes = Probes(heads).to(materials.device)
    model = Model(
        encoder,
        probes,
        materials.device,
        spec.precision,
        pooling="all" if spec.options.pool_special else "pieces",
    )
    seen = Features(read_features(model, materials.units(spec.train)), task.gold(train, labels))
    held = Features(read_features(model, materials.units(spec.dev)), task.gold(dev, labels))

    lesson = ProbeTraining(model, probes, task, seen, spec)
    curve: list[CurvePoint] = []
    for _ in range(spec.hyper.epochs):
        loss, rate = lesson.epoch()
        predicted = lesson.predict(held)
        lesson.close_epoch(held, predicted)
        scores = task.score(dev, held.gold, predicted, labels)
        metric = spec.options.select or task.metric
        if metric not in scores:
            known = ", ".join(sorted(scores))
            raise ValueError(f'options.select = "{metric}": this task has {known}')
        curve.append(
            CurvePoint(
                step=lesson.step,
                epoch=len(curve) + 1,
                loss=loss,
                dev_metric=metric,
                dev_value=scores[metric][0],
                learning_rate=rate,
            )
        )
        if not (yield curve[-1]) and len(curve) < spec.hyper.epochs:
            break
    lesson.take_best()
    scores = task.score(dev, held.gold, lesson.predict(held), labels)
    return Learnt(
        model=model,
        task=task,
        labels=labels,
        dev_scores=as_scores(spec.dev, scores),
        curve=tuple(curve),
        best_epoch=max(lesson.best_epochs),
        pruned_at=None if len(curve) == spec.hyper.epochs else len(curve),
        n_train=train.n_sentences,
        n_words_seen=train.n_words,
    )


@dataclass(frozen=True, slots=True)
class Features:
    """What probes learn from: the pooled states of a file's texts, and their classes."""

    states: Float[Tensor, "S layers d"]
    gold: Int[np.ndarray, "S 1"]


def read_features(model: Model, units: Units) -> Float[Tensor, "S layers d"]:
    """Pool every text of a file in every layer, in one pass; float32, on the CPU."""
    model.encoder.eval()
    order: list[np.ndarray] = []
    found: list[Tensor] = []

    def run(chosen: Int[np.ndarray, " s"]) -> None:
        readings, _ = model.read(units.collate(chosen))
        assert readings.layers is not None  # noqa: S101 - the model pools
        found.append(readings.layers.cpu())
        order.append(chosen)

    batches = model.look_batches(units.lengths)
    with torch.inference_mode(), model.autocast():
        by_halves(batches, units.lengths, run)
    states = torch.cat(found)
    out = torch.empty_like(states)
    out[torch.from_numpy(np.concatenate(order))] = states
    return out


@dataclass(slots=True)
class ProbeTraining:
    """The loop over states that were read before.

    Attributes:
        model: Its device and head.
        probes: Trained in place.
        task: Gives loss and prediction.
        seen: What is trained on.
        spec: Hyper-parameters, seed and options.
        step: Optimiser steps taken.
        dev: Each layer's dev accuracy after each epoch.
        best: Each layer's best probe.
        best_epochs: Its epoch, 1-based; the first best wins ties (D-08).
        optimiser: AdamW with one group a layer.
    """

    model: Model
    probes: Probes
    task: Task
    seen: Features
    spec: TrialSpec
    step: int = 0
    dev: list[list[float]] = field(init=False)
    best: list[dict[str, Tensor]] = field(init=False)
    best_epochs: list[int] = field(init=False)
    optimiser: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        hyper, n = self.spec.hyper, len(self.probes.heads)
        self.dev, self.best, self.best_epochs = [[] for _ in range(n)], [{}] * n, [0] * n
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [parameter], "weight_decay": hyper.weight_decay * (parameter.ndim > 1)}
                for head in self.probes.heads
                for parameter in head.parameters()
            ],
            lr=hyper.learning_rate,
            betas=(hyper.beta1, hyper.beta2),
            eps=hyper.epsilon,
        )

    def epoch(self) -> tuple[float, float]:
        """Train once on every text; mean loss of a probe and the highest last rate."""
        hyper = self.spec.hyper
        n = len(self.seen.gold)
        batches = training_batches(
            np.ones(n, dtype=np.int64),
            batch_size=hyper.batch_size,
            seed=self.spec.seed,
            epoch=len(self.dev[0]),
            how="random",
        )
        self.probes.train()
        loss_sum, rates = torch.zeros((), dtype=torch.float64, device=self.model.device), [0.0]
        for chosen in batches:
            rates = self._rates(hyper.epochs * len(batches))
            loss_sum += self._step(chosen, rates)
            self.step += 1
        return loss_sum.item() / (n * len(self.probes.heads)), max(rates)

    def _rates(self, total: int) -> list[float]:
        """The rate of each layer's probe."""
        return [learning_rate(self.step, total, self.spec.hyper, dev) for dev in self.dev]

    def _step(self, chosen: Int[np.ndarray, " b"], rates: list[float]) -> Tensor:
        torch.manual_seed(stream(self.spec.seed, "dropout", self.step))
        per_layer = len(self.optimiser.param_groups) // len(rates)
        for i, group in enumerate(self.optimiser.param_groups):
            group["lr"] = rates[i // per_layer]
        self.optimiser.zero_grad(set_to_none=True)
        gold = self.model.put(self.seen.gold[chosen])
        loss = self.task.loss(self.probes, self._readings(self.seen, chosen), gold)
        (loss / len(chosen)).backward()  # type: ignore[no-untyped-call] # torch
        if self.spec.hyper.clip_norm > 0:
            for head in self.probes.heads:
                nn.utils.clip_grad_norm_(head.parameters(), self.spec.hyper.clip_norm)
        self.optimiser.step()
        return loss.detach().double()

    def predict(self, features: Features) -> Int[np.ndarray, "S layers"]:
        """What each layer's probe says of every text."""
        self.probes.eval()
        with torch.inference_mode():
            readings = self._readings(features, np.arange(len(features.gold)))
            predicted: np.ndarray = self.task.predict(self.probes, readings).cpu().numpy()
        return predicted

    def _readings(self, features: Features, chosen: Int[np.ndarray, " s"]) -> Readings:
        layers = features.states[torch.from_numpy(chosen)].to(self.model.device)
        nothing = torch.zeros((len(chosen), layers.shape[2]), device=self.model.device)
        n_words = np.zeros(len(chosen), dtype=np.int64)
        return Readings(words=nothing[:0], sentences=nothing, n_words=n_words, layers=layers)

    def close_epoch(self, held: Features, predicted: Int[np.ndarray, "S layers"]) -> None:
        """Note each layer's dev accuracy; remember its probe if it is its best one yet."""
        for layer, head in enumerate(self.probes.heads):
            value = count_right(held.gold[:, 0], predicted[:, layer]).value
            if not self.dev[layer] or value > max(self.dev[layer]):
                self.best[layer] = {k: v.clone() for k, v in head.state_dict().items()}
                self.best_epochs[layer] = len(self.dev[layer]) + 1
            self.dev[layer].append(value)

    def take_best(self) -> None:
        """Put each layer's best probe back."""
        for head, best in zip(self.probes.heads, self.best, strict=True):
            head.load_state_dict(best)
