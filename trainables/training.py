"""The loop: step, schedule, clipping, best epoch on source dev. Knows no files and no labels.

Every random draw of step k comes from a stream named by (seed, purpose, k), so a run that is killed
and resumed from any step boundary ends with the same bits as one that was not.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from trainables.ablations.base import set_train_mode
from trainables.data.batching import training_batches
from trainables.model import Lesson, Model
from trainables.parts import Parts
from trainables.seeding import stream
from trainables.shortage import is_shortage, release
from trainables.spec import CurvePoint, HyperParameters, TrialSpec
from trainables.tasks.base import Task

Scores = Mapping[str, tuple[float, int]]
"""Metric name -> (fraction, items in the denominator)."""


class Diverged(ArithmeticError):  # noqa: N818 - says what happened; not an "Error" of ours
    """The training loss stopped being a number."""


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
        micro_batch: Most sentences per forward pass; 0 for the whole batch. Smaller parts
            draw the dropout of the whole, so the numbers are the same to rounding.
        optimiser: Fused AdamW; biases and normalisation weights (vectors) do not decay (D-06).
        scaler: Loss scale for fp16; does nothing in other precisions.
        progress: Where the run stands; a checkpoint restores it together with the optimiser.
        parts: Takes batches through the model, and knows how much of one fits.
    """

    model: Model
    task: Task
    lesson: Lesson
    spec: TrialSpec
    micro_batch: int = 0
    optimiser: torch.optim.AdamW = field(init=False)
    scaler: torch.amp.GradScaler = field(init=False)
    progress: Progress = field(default_factory=Progress)
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self.parts = Parts(self.model, self.task, self.lesson, self.micro_batch)
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
            One point an epoch, those of before a resumption first; send False to stop.

        Returns:
            True if all epochs ran, False if it was told to stop.

        Raises:
            Diverged: the loss became infinite or not a number.
            ValueError: the selection metric is none of the task's.
        """
        hyper, progress = self.spec.hyper, self.progress
        total = hyper.epochs * self.steps_per_epoch
        progress.loss_sum = progress.loss_sum.to(self.model.device)
        for point in tuple(progress.curve):  # who asks may have been started anew as well
            if not (yield point) and progress.epoch < hyper.epochs:
                return False
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
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        losses, n_labelled = self._gradients(chosen)
        if n_labelled == 0:
            return
        for loss in losses:
            self.progress.loss_sum += loss
        self.progress.n_labelled += n_labelled
        if self.spec.hyper.clip_norm > 0:
            self.scaler.unscale_(self.optimiser)
            nn.utils.clip_grad_norm_(
                [parameter for _, parameter in self.model.trainable()], self.spec.hyper.clip_norm
            )
        self.scaler.step(self.optimiser)
        self.scaler.update()

    def _gradients(self, chosen: Int[np.ndarray, " b"]) -> tuple[list[Tensor], int]:
        """Put the gradients of a batch into the parameters, in as few parts as memory allows.

        A try that runs out of memory begins anew with smaller parts: the draws of a step come from
        a stream of its own, so that nothing of the failed try is left.

        Returns:
            The summed loss of each part, and the labelled rows behind them.

        Raises:
            RuntimeError: a single sentence does not fit.
            MemoryError: as above.
        """
        while True:
            torch.manual_seed(stream(self.spec.seed, "dropout", self.progress.step))
            self.optimiser.zero_grad(set_to_none=True)
            try:
                return self.parts.backward(chosen, self.scaler)
            except (RuntimeError, MemoryError) as error:
                if not is_shortage(error) or not self.parts.shrink():
                    raise
                self.optimiser.zero_grad(set_to_none=True)
                release(error)

    def rehearse(self) -> None:
        """Take the longest sentences there are forward and backward, and forget them again.

        No batch of any epoch needs more memory, so one that does not fit is known before the first
        step. Changes no number: a step clears the gradients and draws from its own stream.
        """
        set_train_mode(self.model.encoder, self.spec.options)
        self.model.head.train()
        longest = np.argsort(self.lesson.units.lengths, kind="stable")
        self._gradients(longest[-self.spec.hyper.batch_size :])
        self.optimiser.zero_grad(set_to_none=True)

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
