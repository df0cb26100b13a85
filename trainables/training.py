"""The loop: step, schedule, clipping, best epoch on source dev. Knows no files and no labels.

Every random draw of step k comes from a stream named by (seed, purpose, k), so a run that is killed
and resumed from any step boundary ends with the same bits as one that was not.
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.ablations.base import set_train_mode
from trainables.data.batching import Batch, Units, forward_parts, training_batches
from trainables.encoders.base import Encoder, EncoderOutput
from trainables.heads.gold_tags import GoldTags
from trainables.seeding import stream
from trainables.similarity.pooling import masked_sum
from trainables.spec import CurvePoint, HyperParameters, TrialSpec
from trainables.tasks.base import Readings, Task

PIECE_BUDGET = {"cpu": 4096, "cuda": 65536}
"""Padded pieces that go forward together, by device; part of what last bits depend on."""

Scores = Mapping[str, tuple[float, int]]
"""Metric name -> (fraction, items in the denominator)."""


def rows_of(batch: Batch, task: Task) -> Int[np.ndarray, " rows"]:
    """Rows of a task's gold that a batch holds: its words or its sentences."""
    return batch.word if task.level == "word" else batch.chosen


class Diverged(ArithmeticError):  # noqa: N818 - says what happened; not an "Error" of ours
    """The training loss stopped being a number."""


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
        """An array on the model's device."""
        return torch.from_numpy(array).to(self.device)

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


@dataclass(slots=True)
class Progress:
    """All that a training run has become; what a checkpoint must hold besides the optimiser.

    Attributes:
        step: Optimiser steps taken.
        epoch: Epochs closed.
        loss_sum: Summed loss of the open epoch, on the device, in float64.
        n_labelled: Labelled rows behind it.
        curve: One point an epoch.
        best_epoch: 1-based; 0 before the first epoch closes. The first best wins ties (D-08).
        best_scores: Dev scores of that epoch.
        best: Its trainable parameters, on the CPU.
    """

    step: int = 0
    epoch: int = 0
    loss_sum: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    n_labelled: int = 0
    curve: list[CurvePoint] = field(default_factory=list)
    best_epoch: int = 0
    best_scores: Scores = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)


def learning_rate(
    step: int, total: int, hyper: HyperParameters, dev: Sequence[float] = ()
) -> float:
    """Rate of the `step`-th of `total` optimiser steps, counted from 0.

    Rises linearly over the first `warmup * total` steps, then does what `hyper.schedule` says.

    Args:
        step: Steps taken.
        total: Steps of the whole training.
        hyper: Peak, warm-up and schedule.
        dev: Selection metric after each epoch so far.
    """
    warm = math.ceil(hyper.warmup * total)
    if step < warm:
        return hyper.learning_rate * (step + 1) / warm
    if hyper.schedule == "constant":
        return hyper.learning_rate
    if hyper.schedule == "plateau":
        stale = sum(value <= max(dev[:i]) for i, value in enumerate(dev) if i)
        return float(hyper.learning_rate * 0.5**stale)
    return hyper.learning_rate * (total - step) / max(1, total - warm)


@dataclass(slots=True)
class Training:
    """One run of the loop over one model.

    Attributes:
        model: Trained in place.
        task: Gives the loss and the name of the selection metric.
        lesson: What is trained on.
        spec: Hyper-parameters, seed and options.
        micro_batch: Sentences per forward pass; 0 for the whole batch.
        optimiser: Fused AdamW; biases and normalisation weights (vectors) do not decay (D-06).
        scaler: Loss scale for fp16; does nothing in other precisions.
        progress: Where the run stands; a checkpoint restores it together with the optimiser.
    """

    model: Model
    task: Task
    lesson: Lesson
    spec: TrialSpec
    micro_batch: int = 0
    optimiser: torch.optim.AdamW = field(init=False)
    scaler: torch.amp.GradScaler = field(init=False)
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        hyper = self.spec.hyper
        parameters = [parameter for _, parameter in self.model.trainable()]
        matrices = [p for p in parameters if p.ndim > 1]
        vectors = [p for p in parameters if p.ndim <= 1]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": hyper.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=hyper.learning_rate,
            betas=(hyper.beta1, hyper.beta2),
            eps=hyper.epsilon,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(
            self.model.device.type, enabled=self.model.precision == "fp16"
        )

    @property
    def metric(self) -> str:
        """Name of the metric on source dev that picks the best epoch."""
        return self.spec.options.select or self.task.metric

    @property
    def dev_values(self) -> tuple[float, ...]:
        """The selection metric after each epoch so far."""
        return tuple(point.dev_value for point in self.progress.curve)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one pass over the sentences."""
        return math.ceil(len(self.lesson.units.lengths) / self.spec.hyper.batch_size)

    def epochs(
        self, dev_scores: Callable[[], Scores], after_step: Callable[[], None]
    ) -> Generator[CurvePoint, bool, bool]:
        """Fine-tune from where `progress` stands to the last epoch.

        Args:
            dev_scores: Scores the model on source dev.
            after_step: Called at every step boundary (checkpoints).

        Yields:
            One point an epoch; send False to stop.

        Returns:
            True if all epochs ran, False if it was told to stop.

        Raises:
            Diverged: the loss became infinite or not a number.
            ValueError: the selection metric is none of the task's.
        """
        hyper, progress = self.spec.hyper, self.progress
        total = hyper.epochs * self.steps_per_epoch
        progress.loss_sum = progress.loss_sum.to(self.model.device)
        for epoch in range(progress.epoch, hyper.epochs):
            batches = training_batches(
                self.lesson.units.lengths,
                batch_size=hyper.batch_size,
                seed=self.spec.seed,
                epoch=epoch,
                how=self.spec.options.batching,
            )
            set_train_mode(self.model.encoder, self.spec.options)
            self.model.head.train()
            for chosen in batches[progress.step - epoch * self.steps_per_epoch :]:
                self._step(chosen, learning_rate(progress.step, total, hyper, self.dev_values))
                progress.step += 1
                after_step()
            rate = learning_rate(progress.step - 1, total, hyper, self.dev_values)
            point = self._close_epoch(dev_scores(), rate)
            if not (yield point) and progress.epoch < hyper.epochs:
                return False
        return True

    def _step(self, chosen: Int[np.ndarray, " b"], rate: float) -> None:
        """One optimiser step; the loss is the mean over the batch's labelled rows."""
        units = self.lesson.units
        places = forward_parts(
            units.lengths[chosen],
            size=self.micro_batch or len(chosen),
            budget=PIECE_BUDGET[self.model.device.type],
        )
        parts = [units.collate(chosen[place]) for place in places]
        golds = [self.lesson.gold[rows_of(part, self.task)] for part in parts]
        n_labelled = sum(int((gold[:, 0] >= 0).sum()) for gold in golds)
        if n_labelled == 0:
            return
        torch.manual_seed(stream(self.spec.seed, "dropout", self.progress.step))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        for part, gold in zip(parts, golds, strict=True):
            with self.model.autocast():
                readings, _ = self.model.read(part)
                loss = self.task.loss(self.model.head, readings, self.model.put(gold))
            self.scaler.scale(loss / n_labelled).backward()  # type: ignore[no-untyped-call] # torch
            self.progress.loss_sum += loss.detach().double()
        self.progress.n_labelled += n_labelled
        if self.spec.hyper.clip_norm > 0:
            self.scaler.unscale_(self.optimiser)
            nn.utils.clip_grad_norm_(
                [parameter for _, parameter in self.model.trainable()], self.spec.hyper.clip_norm
            )
        self.scaler.step(self.optimiser)
        self.scaler.update()

    def _close_epoch(self, scores: Scores, rate: float) -> CurvePoint:
        """Add the epoch's point to the curve; keep its weights if it is the best one yet."""
        progress, metric = self.progress, self.metric
        if metric not in scores:
            known = ", ".join(sorted(scores))
            raise ValueError(f'options.select = "{metric}": this task has {known}')
        loss = progress.loss_sum.item() / max(1, progress.n_labelled)
        if not math.isfinite(loss):
            raise Diverged(
                f"the training loss is {loss} in epoch {progress.epoch + 1}; "
                "lower hyper.learning_rate or set hyper.clip_norm"
            )
        progress.epoch += 1
        point = CurvePoint(
            step=progress.step,
            epoch=progress.epoch,
            loss=loss,
            dev_metric=metric,
            dev_value=scores[metric][0],
            learning_rate=rate,
        )
        progress.curve.append(point)
        if progress.best_epoch == 0 or point.dev_value > progress.best_scores[metric][0]:
            progress.best_epoch, progress.best_scores = progress.epoch, dict(scores)
            progress.best = {
                name: parameter.detach().to("cpu", copy=True)
                for name, parameter in self.model.trainable()
            }
        progress.loss_sum = torch.zeros_like(progress.loss_sum)
        progress.n_labelled = 0
        return point
