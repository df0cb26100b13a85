"""What a trial is and what comes out of it: frozen values, standard library only.

Identity. Fields marked *identity* change the result of training and enter the trial id
(`sweep.identity`); all others say where something lies or what else to measure, and may
change freely without recomputing anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

State = Literal["pretrained", "fine-tuned"]
"""Which weights a similarity was measured on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRef:
    """One pretrained encoder, pinned.

    Attributes:
        name: As the study names it: a hub id or a folder. Shown to people.
        location: Where it is: a hub id, an absolute folder, or the name of one that ships.
        revision: Commit hash on the hub; empty for a folder.
        fingerprint: *identity*. `hub:<commit>` or `sha256:<hash of the folder's content>`.
        n_layers: Number of transformer blocks, as its config says.
    """

    name: str
    location: str
    revision: str = ""
    fingerprint: str
    n_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRef:
    """One file of sentences, pinned by its content.

    Attributes:
        code: Treebank code (`en_ewt`) or data set name (`wikiann-en`).
        language: Language code as UD writes it (`en`).
        split: `train`, `dev` or `test`.
        location: Absolute path. Not identity.
        layout: *identity*. Name of the reader, as in `registry.LAYOUTS` (`conllu`).
        fingerprint: *identity*. `sha256:<hash of the file's content>`.
        limit: *identity*. Only the first `limit` sentences are used; None means all.
        skip: *identity*. Sentences left out before those.
    """

    code: str
    language: str
    split: str
    location: str
    layout: str = "conllu"
    fingerprint: str
    limit: int | None = None
    skip: int = 0

    @property
    def key(self) -> str:
        """What was read, in one word: two refs with equal keys hold the same sentences."""
        if self.limit is None and not self.skip:
            return self.fingerprint
        end = "" if self.limit is None else self.skip + self.limit
        return f"{self.fingerprint}[{self.skip or ''}:{end}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperParameters:
    """What the optimiser is told. All *identity*. Defaults: decision D-06, family A.

    Attributes:
        learning_rate: Peak of the schedule.
        batch_size: Sentences (with all their windows) per optimiser step, whatever the micro-batch.
        epochs: Passes over the training data; the best one on source dev is kept.
        warmup: Fraction of all steps over which the rate rises linearly from 0.
        schedule: After the warm-up: `linear` falls to 0 at the last step, `constant` stays,
            `plateau` stays but is halved after every epoch that is no better on source dev than
            the best before it.
        weight_decay: Decoupled; never applied to biases and normalisation weights.
        beta1: First AdamW moment decay.
        beta2: Second AdamW moment decay.
        epsilon: AdamW's denominator term.
        clip_norm: Largest gradient norm; 0 means no clipping.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    warmup: float = 0.1
    schedule: Literal["linear", "constant", "plateau"] = "linear"
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip_norm: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """Protocol choices that change a result. All *identity* (defaults are left out of the id).

    Attributes:
        max_length: Longest window in pieces, special pieces included.
        overlap: Pieces of unlabelled left context in every window after the first (D-11).
        denominator: What becomes of words beyond the longest window (D-11): `strict` labels them
            in windows of their own, so that every word counts; `legacy` cuts them away before
            training and scoring, as the published codes do, and says so in `words_kept`.
        head_dropout: Dropout between encoder and head.
        reinit: Distribution of re-initialised weights (D-04): `normal` is N(0,
            initializer_range) with zero biases and unit norms; `torch-default` is what the
            published port of the paper's code does.
        frozen_mode: Mode of frozen blocks during training (D-13).
        batching: `bucketed` groups windows of similar length inside shuffled mega-batches;
            `random` draws them freely.
        pool_special: Whether the mean over pieces that a probe reads takes in special pieces, as
            the second paper's code does.
        select: Metric on source dev that picks the best epoch; empty means the task's own.
        parser: Shape of the parsing head, as in `heads.biaffine.SHAPES`: `first-align` is that of
            the first paper, `beto` that of the second.
        deprels: Relations that a parser learns: `full` ones, or `coarse` ones without subtypes.
    """

    max_length: int = 512
    overlap: int = 64
    denominator: Literal["strict", "legacy"] = "strict"
    head_dropout: float = 0.0
    reinit: Literal["normal", "torch-default"] = "normal"
    frozen_mode: Literal["eval", "train"] = "eval"
    batching: Literal["bucketed", "random"] = "bucketed"
    pool_special: bool = False
    select: str = ""
    parser: Literal["first-align", "beto"] = "first-align"
    deprels: Literal["full", "coarse"] = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """One fine-tuning run. Everything in it is *identity*, but for names and locations.

    A *probe* is the trial that trains nothing: task `probe`, no training data, 0 epochs. It
    measures the pretrained encoder as it is.
    """

    task: str
    encoder: EncoderRef
    source: str
    train: DataRef | None
    dev: DataRef | None
    ablation: str
    hyper: HyperParameters
    seed: int
    options: TrialOptions = field(default_factory=TrialOptions)
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityRequest:
    """Which parallel sentences to compare, and how.

    Attributes:
        parallel: One file per language, all holding the same sentences.
        pivots: Languages that are compared with every other one; all languages for all pairs.
        measures: Names in `registry.SIMILARITIES`.
        null_draws: Shuffled pairings behind each value's null distribution; 0 leaves it out.
        unmatched: Sentences that some language lacks: `refuse` the study or `drop` them.
    """

    parallel: tuple[DataRef, ...]
    pivots: tuple[str, ...]
    measures: tuple[str, ...] = ("linear-cka",)
    null_draws: int = 20
    unmatched: Literal["refuse", "drop"] = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to measure on a trained trial. Never part of its id.

    Attributes:
        targets: Test sets to predict and score.
        similarity: Parallel sentences to compare; None for none.
        keep: `best` stores the best epoch's weights, so that later requests train nothing.
        sentences: Whether to keep what each sentence adds to the score of each target. Its absence
            is no reason to measure again.
    """

    targets: tuple[DataRef, ...] = ()
    similarity: SimilarityRequest | None = None
    keep: Literal["none", "best"] = "none"
    sentences: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One measured number: how well one test set was predicted.

    Attributes:
        split: `dev` or `test`.
        treebank: Code of the test set.
        language: Its language.
        data_key: `DataRef.key` of what was scored.
        metric: Name of the metric.
        value: Fraction in [0, 1].
        n: Items in the denominator (words, spans, sentences).
    """

    split: str
    treebank: str
    language: str
    data_key: str
    metric: str
    value: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceCounts:
    """What each sentence of one test set adds to a score (`metrics.by_sentence`).

    Attributes:
        split: `dev` or `test`.
        treebank: Code of the test set.
        language: Its language.
        data_key: `DataRef.key` of what was scored.
        metric: Name of the metric whose value the counts give.
        items: What there is to get right in each sentence: words, spans, 1 for a whole text.
        missed: How many of these were not.
        spurious: What was predicted beside the right ones; None where each item gets one
            prediction.
    """

    split: str
    treebank: str
    language: str
    data_key: str
    metric: str
    items: tuple[int, ...]
    missed: tuple[int, ...]
    spurious: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """One measured number: how alike two languages are in one state of the encoder.

    Attributes:
        state: Which weights: `pretrained` or `fine-tuned`.
        source: First language (the pivot).
        target: Second language.
        source_key: `DataRef.key` of the first file.
        target_key: `DataRef.key` of the second file.
        layer: Index of the state: 0 is the embeddings, l leaves layer l.
        measure: Name of the measure.
        value: As the measure defines it; NaN where it is undefined.
        n: Sentence pairs.
        null_mean: Mean over shuffled pairings; NaN when none were drawn.
        null_95: 95 % quantile over shuffled pairings; NaN when none were drawn.
        options: How it was taken, as JSON: kernel, centring, bias, text, pooling, dtype (D-22).
    """

    state: State
    source: str
    target: str
    source_key: str
    target_key: str
    layer: int
    measure: str
    value: float
    n: int
    null_mean: float
    null_95: float
    options: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One point of the training curve, taken at the end of an epoch.

    Attributes:
        step: Optimiser steps so far.
        epoch: Epochs so far, 1-based.
        loss: Mean training loss over the epoch.
        dev_metric: Name of the selection metric.
        dev_value: Its value on source dev.
        learning_rate: Rate of the last step.
    """

    step: int
    epoch: int
    loss: float
    dev_metric: str
    dev_value: float
    learning_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What happened on the way; never compared between runs.

    Durations in seconds, memory in bytes (peak resident set on CPU, peak allocated on GPU).
    `micro_batch` counts the sentences of the largest part that went forward where memory forced
    smaller parts than the batch asks for; None where it never did. `device_memory`, `gpu_share` and
    `has_mps` (several processes share the GPU's cores through a daemon) are None on the CPU.
    `matmul_s` is the mean time of a fixed matrix product beside the trial, which says how fast the
    machine was (`trainables.pace`); None on a GPU.
    """

    device: str
    threads: int
    load_s: float
    train_s: float
    evaluate_s: float
    similarity_s: float
    peak_memory: int
    train_words_per_s: float
    resumed_epochs: int
    n_train: int
    n_parameters: int
    n_reinitialised: int
    n_frozen: int
    micro_batch: int | None = None
    device_memory: int | None = None
    gpu_share: float | None = None
    has_mps: bool | None = None
    matmul_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """All that a trial measured. Equal for equal specs and requests, but for `facts`.

    `best_epoch` is 1-based; 0 for a probe. `pruned_at` is the epoch after which a scheduler
    stopped the trial, else None; a pruned trial has no scores and enters no mean.
    """

    best_epoch: int
    scores: tuple[Score, ...]
    similarity: tuple[Similarity, ...]
    curve: tuple[CurvePoint, ...]
    facts: Facts
    pruned_at: int | None = None
    sentences: tuple[SentenceCounts, ...] = ()


Report = Callable[[CurvePoint], bool]
"""Called after every epoch; False asks the trial to stop (pruning)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Where a trial may work. Nothing in it is identity.

    `threads`, `device` and `micro_batch` change the last bits of a result (sums are cut otherwise).
    On a GPU `micro_batch` changes more where there is dropout in fused attention, which is drawn
    part by part: another sample, the same expectation.

    Attributes:
        checkpoints: Folder (path or `pyarrow.fs` URI) of this trial's checkpoints and kept
            weights; survives the worker.
        cache: Local folder of tokenised data, shared by the workers of a node.
        threads: CPU threads the trial may use.
        device: `cpu` or `cuda`.
        checkpoint_s: Least seconds between two mid-trial checkpoints, which are taken at step
            boundaries: the most work that a kill can lose.
        gpus: Share of a GPU that the trial has to itself; 0.0 on the CPU.
        memory_fraction: Hard cap on the share of a GPU's memory; 1.0 for none.
        rehearse: Only find out how much memory the trial needs; nothing is trained or committed.
        micro_batch: Sentences per forward pass of training; 0 means the whole batch. Smaller ones
            are accumulated to the same effective batch.
    """

    checkpoints: str
    cache: str
    threads: int = 1
    device: str = "cpu"
    checkpoint_s: float = 300.0
    gpus: float = 0.0
    memory_fraction: float = 1.0
    rehearse: bool = False
    micro_batch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work for an executor: a trial and what to measure on it.

    Attributes:
        job_id: The trial id; with `+<hash of the request>` when a finished trial is asked for
            more.
        trial_id: Id of `spec`.
        study: Name of the study that asked first. Shown to people; not identity.
        spec: The trial.
        request: What to measure.
        workspace: Where to work.
        store: Root of the result store (path or URI).
        attempt: 1 for the first try.
        phase: What it is for: `search` (one point of a search of hyper-parameters), `report` (a
            number of a table), `probe`. Shown to people; not identity.
    """

    job_id: str
    trial_id: str
    study: str
    spec: TrialSpec
    request: Request
    workspace: Workspace
    store: str
    attempt: int = 1
    phase: str = "report"
