"""Fine-tune an encoder on the source language, or take up weights that were kept."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from trainables.ablations.gold_pos import is_told
from trainables.checkpoint import Checkpoints, Kept
from trainables.data.subwords import Corpus
from trainables.data.texts import TextCorpus
from trainables.encoders.base import Encoder
from trainables.encoders.compact import CompactEmbedding, decay_factor
from trainables.evaluation import look
from trainables.heads.gold_tags import WIDTH, GoldTags
from trainables.materials import Materials
from trainables.metrics.by_sentence import BySentence
from trainables.model import Lesson, Model
from trainables.registry import check_name
from trainables.spec import (
    CurvePoint,
    DataRef,
    HyperParameters,
    Score,
    SentenceCounts,
    TrialSpec,
)
from trainables.tasks.base import Task
from trainables.training import Scores, Training, learning_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A model as its best epoch left it, and how it got there.

    Attributes:
        model: Encoder (with its whole input embedding) and head.
        task: What the head predicts; None for a probe.
        labels: Label inventory of the head.
        dev_scores: Source dev at the best epoch; empty for a probe.
        curve: One point an epoch, resumed epochs included.
        best_epoch: 1-based; 0 for a probe.
        pruned_at: Epoch after which the trial was told to stop, else None.
        resumed_epochs: Epochs that an earlier attempt had closed.
        n_train: Training sentences.
        n_words_seen: Words trained on in this attempt.
        micro_batch: Most sentences that went forward at a time, where memory forced parts.
    """

    model: Model
    task: Task | None = None
    labels: tuple[str, ...] = ()
    dev_scores: tuple[Score, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    best_epoch: int = 0
    pruned_at: int | None = None
    resumed_epochs: int = 0
    n_train: int = 0
    n_words_seen: int = 0
    micro_batch: int | None = None

    def measured(
        self,
        ref: DataRef,
        corpus: Corpus | TextCorpus,
        predicted: Int[np.ndarray, "rows k"] | None,
        metric: str,
    ) -> tuple[tuple[Score, ...], SentenceCounts | None]:
        """All metrics of the task on one predicted file, and one of them sentence by sentence.

        Args:
            ref: The file.
            corpus: What it holds.
            predicted: What the head said of it.
            metric: Which one; empty for none.
        """
        assert self.task is not None  # noqa: S101 - a probe has no targets
        assert predicted is not None  # noqa: S101 - a task was given
        gold = self.task.gold(corpus, self.labels)
        scores = as_scores(ref, scored(self.task, corpus, gold, predicted, self.labels))
        known = {score.metric for score in scores}
        if metric not in known:
            return scores, None
        counts = self.task.by_sentence(corpus, gold, predicted, self.labels, metric)
        return scores, None if counts is None else as_row(ref, metric, counts)


def untrained(encoder: Encoder, materials: Materials) -> Learnt:
    """The encoder as it is: what a probe measures."""
    return Learnt(model=Model(encoder, nn.Identity(), materials.device, materials.spec.precision))


def fine_tune(
    encoder: Encoder, task: Task, materials: Materials, *, keep: bool
) -> Generator[CurvePoint, bool, Learnt]:
    """Train with best-epoch selection on source dev; resume from the trial's own checkpoints.

    Only the rows of the input embedding that the source data use take part: the others would get
    neither gradient nor (without weight decay) any update.

    Args:
        encoder: Ablated, on the device; trained in place.
        task: What to predict.
        materials: Files and device of the trial.
        keep: Store the best epoch's weights.

    Raises:
        UnknownName: `options.select` is none of the task's metrics.
    """
    spec, workspace = materials.spec, materials.workspace
    assert spec.train is not None  # noqa: S101 - a probe does not get here
    assert spec.dev is not None  # noqa: S101 - nor a study without dev data
    train, dev = materials.corpus(spec.train), materials.corpus(spec.dev)
    labels = task.inventory(train)
    _check_select(spec.options.select, task, dev, labels)
    model = with_head(encoder, task, labels, materials)
    checkpoints = Checkpoints(workspace.checkpoints, spec, interval_s=workspace.checkpoint_s)

    kept = checkpoints.kept()
    if kept is not None and kept.labels == labels:
        return _take_up(kept, model, task, train, spec)

    training, table = begin(model, task, labels, materials)
    checkpoints.restore(training)
    epochs_before, steps_before = training.progress.epoch, training.progress.step

    dev_units, dev_gold = materials.units(spec.dev), task.gold(dev, labels)

    def dev_scores() -> Scores:
        seen = look(model, task, dev_units, with_states=False)
        assert seen.predicted is not None  # noqa: S101 - a task was given
        return scored(task, dev, dev_gold, seen.predicted, labels)

    def after_step() -> None:
        materials.pace.look()
        checkpoints.save_if_due(training)

    finished = yield from training.epochs(dev_scores, after_step)
    checkpoints.wait()
    progress = training.progress
    with torch.no_grad():
        for name, parameter in model.trainable():
            parameter.copy_(progress.best[name])
    if keep and finished:
        checkpoints.keep(training, table.ids, labels)
    table.release(_decay(spec.hyper, tuple(progress.curve), progress.best_epoch))
    return Learnt(
        model=model,
        task=task,
        labels=labels,
        dev_scores=as_scores(spec.dev, progress.best_scores),
        curve=tuple(progress.curve),
        best_epoch=progress.best_epoch,
        pruned_at=None if finished else progress.epoch,
        resumed_epochs=epochs_before,
        n_train=train.n_sentences,
        n_words_seen=(progress.step - steps_before) * train.n_words // training.steps_per_epoch,
        micro_batch=training.parts.forced or None,
    )


def with_head(encoder: Encoder, task: Task, labels: tuple[str, ...], materials: Materials) -> Model:
    """The encoder, already on the device, with the task's head on it as the seed begins it."""
    spec = materials.spec
    tags = GoldTags(spec.seed).to(materials.device) if is_told(spec.ablation) else None
    width = encoder.hidden_size + (WIDTH if tags is not None else 0)
    head = task.head(width, labels, spec.options, spec.seed).to(materials.device)
    return Model(encoder, head, materials.device, spec.precision, tags=tags)


def begin(
    model: Model, task: Task, labels: tuple[str, ...], materials: Materials
) -> tuple[Training, CompactEmbedding]:
    """The training at its first step, and the embedding that holds only what it will look up."""
    spec = materials.spec
    assert spec.train is not None  # noqa: S101 - something is trained
    assert spec.dev is not None  # noqa: S101 - as above
    train, dev = materials.corpus(spec.train), materials.corpus(spec.dev)
    table = CompactEmbedding(model.encoder, _pieces_in_use(materials, train, dev))
    lesson = Lesson(materials.units(spec.train), task.gold(train, labels))
    micro_batch = materials.workspace.micro_batch
    return Training(model, task, lesson, spec, micro_batch=micro_batch), table


def _check_select(
    select: str, task: Task, dev: Corpus | TextCorpus, labels: tuple[str, ...]
) -> None:
    """Refuse a selection metric that the task does not have, before an epoch is spent on it.

    Raises:
        UnknownName: as said.
    """
    if select:
        gold = task.gold(dev, labels)
        scores = task.score(dev, gold, np.zeros_like(gold), labels)
        check_name("options.select", select, dict.fromkeys(scores, ""))


def _take_up(
    kept: Kept, model: Model, task: Task, train: Corpus | TextCorpus, spec: TrialSpec
) -> Learnt:
    """Put stored weights into a freshly loaded and ablated model."""
    assert spec.dev is not None  # noqa: S101 - checked by fine_tune
    table = CompactEmbedding(model.encoder, kept.table_ids)
    with torch.no_grad():
        for name, parameter in model.trainable():
            parameter.copy_(kept.weights[name])
    table.release(_decay(spec.hyper, kept.curve, kept.best_epoch))
    return Learnt(
        model=model,
        task=task,
        labels=kept.labels,
        dev_scores=as_scores(spec.dev, kept.best_scores),
        curve=kept.curve,
        best_epoch=kept.best_epoch,
        resumed_epochs=len(kept.curve),
        n_train=train.n_sentences,
    )


def _decay(hyper: HyperParameters, curve: tuple[CurvePoint, ...], best_epoch: int) -> float:
    """What decay did, up to the best epoch, to embedding rows that took no part in training."""
    if hyper.weight_decay == 0 or not curve:
        return 1.0
    total = hyper.epochs * curve[0].step
    rates = (
        learning_rate(
            step, total, hyper, [point.dev_value for point in curve if point.step <= step]
        )
        for step in range(curve[best_epoch - 1].step)
    )
    return decay_factor(rates, hyper.weight_decay)


def _pieces_in_use(
    materials: Materials, train: Corpus | TextCorpus, dev: Corpus | TextCorpus
) -> Int[np.ndarray, " ids"]:
    """Piece ids that fine-tuning may look up, sorted: those of train and dev, and special ones."""
    special = materials.special
    extra = np.array([*special.prefix, *special.suffix, special.pad, max(special.unknown, 0)])
    return np.unique(np.concatenate([train.pieces, dev.pieces, extra]))


def scored(
    task: Task,
    corpus: Corpus | TextCorpus,
    gold: Int[np.ndarray, "rows k"],
    predicted: Int[np.ndarray, "rows k"],
    labels: tuple[str, ...],
) -> Scores:
    """All metrics of the task, and how many words were scored where some may be left out (D-11)."""
    scores = task.score(corpus, gold, predicted, labels)
    if isinstance(corpus, TextCorpus) or corpus.whole is None:
        return scores
    n = corpus.whole.n_words
    return {**scores, "words_kept": (corpus.n_words / n, n)}


def as_scores(ref: DataRef, scores: Scores) -> tuple[Score, ...]:
    """One row a metric."""
    return tuple(
        Score(
            split=ref.split,
            treebank=ref.code,
            language=ref.language,
            data_key=ref.key,
            metric=metric,
            value=value,
            n=n,
        )
        for metric, (value, n) in scores.items()
    )


def as_row(ref: DataRef, metric: str, counts: BySentence) -> SentenceCounts:
    """The counts of one file."""
    return SentenceCounts(
        split=ref.split,
        treebank=ref.code,
        language=ref.language,
        data_key=ref.key,
        metric=metric,
        items=tuple(counts.items.tolist()),
        missed=tuple(counts.missed.tolist()),
        spurious=None if counts.spurious is None else tuple(counts.spurious.tolist()),
    )
