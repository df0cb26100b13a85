"""How much work a trial is: operations by part, from encoder, data and settings; pure.

A forward pass costs 2 floating-point operations a weight and piece, a backward pass twice that
(Kaplan et al. 2020, arXiv:2001.08361, section 2.1), attention 4 more a layer for each pair of
pieces of a sentence and unit of width. The optimiser touches every weight at every step. Counted
too are the passes over dev after every epoch, over all targets, and over the parallel sentences,
and a parser's projections and forms. On a CPU, what is done number by number (dropout, activations,
normalisation) and the calls themselves cost as much as the products of a narrow encoder; on a GPU
they are part of the share of its peak that is reached, and of what a core queues.
Not counted: padding (5 % in bucketed batches), tokenising (once a node), writing checkpoints. A
model, not a measurement: what it leaves out is what `sweep.pricing.speeds` learns from the ledger.
"""

import re
from dataclasses import dataclass, field

from sweep.pricing.devices import Load
from sweep.pricing.sizes import Shape, Size, shape_of, size_of
from trainables.registry import LEARNERS
from trainables.spec import DataRef, EncoderRef, Request, TrialSpec

_OPTIMISER = 90.0
"""Operations that a step of AdamW is worth, a weight: it waits for memory. Measured on a CPU, while
products ran at 55e9 a second; assumed for GPUs."""

_ELEMENTS = {"look": 1_700.0, "train": 9_800.0}
"""Operations that all but the matrix products is worth on a CPU, a piece, layer and unit of width:
of a forward pass, and of a forward and backward pass with dropout. Measured for widths of 64 to 768
on a core that did 85e9 operations a second in products."""

_CALLS = {"look": 2.8e7, "train": 8e7}
"""Operations that the calls are worth on a CPU, of a batch through one block. Measured as above."""

_LOOK_BATCH = 393_216
"""Numbers in one layer's states of a batch that is looked at on a CPU; of `trainables.model`."""

_LEAST_BATCHES = 3
"""Batches of a small file whose sentences differ in length."""

_ROWS = 30_000
"""Rows of the embedding table that a training set uses; only these are trained."""

_QUEUES = {"parsing": 1.4}
"""Times as long as for a tagger that a core queues work for a GPU, with decoding; else 1."""

_PARSING = "parsing"

_PARSERS = {"first-align": (500, 200), "beto": (512, 128)}
"""Widths of the projections behind arcs and behind labels; of `trainables.heads.biaffine`."""

_LABELS = 40
"""Relations that a parser tells apart: 20 to 50 in treebanks."""

_TOUCHED = 0.4
"""What it costs on a CPU to write and read a form a label and word, beside its products."""

_PADDED = 1.3
"""Places over words where a parser pads the sentences of a batch."""

_LOAD_S, _LOAD_WEIGHT_S = 0.05, 2e-9
"""Seconds to load encoder and tokenised data into a warm worker, and more of them a weight.
Measured on a CPU: 0.05 for a tiny encoder, 0.1 to 0.6 for one of 118 million weights."""

_QUEUE_S = 4.5e-3
"""Seconds that one core needs to queue a step through one block on a GPU, forward and backward: on
a fast card, small batches wait for this and not for arithmetic. Measured beside an H100, bf16:
3.8e-3 to 4.7e-3 (12 blocks of width 768), 5.1e-3 (of width 384, eight trials on 16 cores)."""

_READ_S = 3e-4
"""Seconds that one core needs around the forward pass of a sentence that is predicted and pooled.
Measured as above: 2.5e-4 to 3e-4."""

_COMPARE = 2e10
"""Operations a second of the comparison of states, in float64 on the CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of one job.

    Attributes:
        train: Training and the looks at dev.
        evaluate: Prediction on the targets and pooling of states.
        fixed_s: Seconds of loading and comparing, on any device.
    """

    train: Load
    evaluate: Load
    fixed_s: float


@dataclass(slots=True)
class Reckoner:
    """Counts the work of jobs; remembers files, encoders and equal jobs."""

    _shapes: dict[EncoderRef, Shape] = field(default_factory=dict)
    _sizes: dict[DataRef, Size] = field(default_factory=dict)
    _done: dict[tuple[object, ...], Work] = field(default_factory=dict)
    _requests: dict[int, Request] = field(default_factory=dict)

    def work(self, spec: TrialSpec, request: Request, *, trains: bool) -> Work:
        """The work of a job.

        Args:
            spec: The trial.
            request: What is to be measured on it.
            trains: Whether it is trained, or measured on weights that were kept.
        """
        key = self.key(spec, request, trains=trains)
        if key not in self._done:
            self._done[key] = self._work(spec, request, trains=trains)
        return self._done[key]

    def key(self, spec: TrialSpec, request: Request, *, trains: bool) -> tuple[object, ...]:
        """Equal for jobs of equal work, and quick to find."""
        self._requests[id(request)] = request  # held, so that its id stays its own
        hyper, train, dev = spec.hyper, spec.train, spec.dev
        return (
            *(spec.task, spec.source, spec.ablation, hyper.epochs, hyper.batch_size),
            spec.options.parser,
            spec.encoder.fingerprint,
            train and (train.fingerprint, train.limit, train.skip),
            dev and (dev.fingerprint, dev.limit, dev.skip),
            id(request),
            trains,
        )

    @property
    def doubts(self) -> list[str]:
        """What had to be assumed, in words."""
        files = sum(not size.is_counted for size in self._sizes.values())
        told = []
        if files:
            told.append(f"the size of {files} of {len(self._sizes)} files is assumed")
        told += [
            f"the shape of encoder '{ref.name}' is assumed (12 layers of width 768)"
            for ref, shape in self._shapes.items()
            if not shape.is_known
        ]
        return told

    def _work(self, spec: TrialSpec, request: Request, *, trains: bool) -> Work:
        shape = self._shape(spec.encoder)
        train = Load()
        if trains and spec.train is not None and spec.dev is not None:
            size, dev = self._size(spec.train), self._size(spec.dev)
            if spec.task in LEARNERS:  # a probe on frozen states reads the sentences once
                train = _look(shape, spec, size) + _look(shape, spec, dev)
            else:
                steps = spec.hyper.epochs * size.sentences / max(1, spec.hyper.batch_size)
                once = _lesson(shape, spec, size) + _look(shape, spec, dev)
                train = once.times(spec.hyper.epochs) + _step(shape, spec).times(steps)
        targets = {ref.key: ref for ref in request.targets}
        parallel = request.similarity.parallel if request.similarity is not None else ()
        evaluate = Load()
        for key, ref in (targets | {ref.key: ref for ref in parallel}).items():
            evaluate += _look(shape, spec, self._size(ref), is_predicted=key in targets)
        compare = self._compare(request, shape) / _COMPARE
        weights = shape.layers * shape.block + shape.vocabulary * shape.hidden
        load_s = _LOAD_S + _LOAD_WEIGHT_S * weights
        return Work(train=train, evaluate=evaluate, fixed_s=load_s + compare)

    def _compare(self, request: Request, shape: Shape) -> float:
        """Operations of the comparison: a Gram matrix a language and state, and their products."""
        wanted = request.similarity
        if wanted is None:
            return 0.0
        sizes = [self._size(ref).sentences for ref in wanted.parallel]
        n = max(sizes, default=0.0)
        states = shape.layers + 1
        pairs = len(wanted.pivots) * max(0, len(sizes) - 1)
        one = n**2 * (2.0 * shape.hidden * len(sizes) + 4.0 * pairs * (1 + wanted.null_draws / 4))
        return one * states * len(wanted.measures)

    def _shape(self, encoder: EncoderRef) -> Shape:
        if encoder not in self._shapes:
            self._shapes[encoder] = shape_of(encoder)
        return self._shapes[encoder]

    def _size(self, ref: DataRef) -> Size:
        if ref not in self._sizes:
            self._sizes[ref] = size_of(ref)
        return self._sizes[ref]


def _look(shape: Shape, spec: TrialSpec, size: Size, *, is_predicted: bool = True) -> Load:
    """A file read once; without prediction, its states alone."""
    if not size.sentences:
        return Load()
    batches = max(_LEAST_BATCHES, size.pieces * shape.hidden / _LOOK_BATCH)
    wide = _ELEMENTS["look"] * shape.hidden * size.pieces
    load = Load(
        operations=forward(shape, size),
        elements=(wide + _CALLS["look"] * batches) * shape.layers,
        queue_s=_READ_S * size.sentences * _queued(spec),
    )
    return load + _parse(spec, shape, size, is_learnt=False) if is_predicted else load


def _lesson(shape: Shape, spec: TrialSpec, size: Size) -> Load:
    """One epoch forward and backward; a frozen layer is only read."""
    frozen = frozen_share(spec.ablation, shape)
    each = frozen * _ELEMENTS["look"] + (1.0 - frozen) * _ELEMENTS["train"]
    load = Load(
        operations=forward(shape, size) * (3.0 - 2.0 * frozen),
        elements=each * shape.layers * shape.hidden * size.pieces,
    )
    return load + _parse(spec, shape, size, is_learnt=True).times(3.0)


def _step(shape: Shape, spec: TrialSpec) -> Load:
    """What a step costs whatever its batch holds: the optimiser, the calls, their queue."""
    frozen = frozen_share(spec.ablation, shape)
    weights = shape.layers * shape.block + min(_ROWS, shape.vocabulary) * shape.hidden
    return Load(
        operations=_OPTIMISER * (weights * (1.0 - frozen) + _parser_weights(spec, shape)),
        elements=_CALLS["train"] * shape.layers * (1.0 - 2.0 / 3.0 * frozen),
        queue_s=_QUEUE_S * shape.layers * (1.0 - 2.0 / 3.0 * frozen) * _queued(spec),
    )


def _queued(spec: TrialSpec) -> float:
    return _QUEUES.get(spec.task, 1.0)


def _parser_weights(spec: TrialSpec, shape: Shape) -> float:
    if spec.task != _PARSING:
        return 0.0
    arc, label = _PARSERS[spec.options.parser]
    return 2.0 * shape.hidden * (arc + label) + arc**2 + _LABELS * label**2


def _parse(spec: TrialSpec, shape: Shape, size: Size, *, is_learnt: bool) -> Load:
    """A parser's head over a file, forward.

    Words and their heads are projected and meet in a form for arcs and in one for each label. While
    it learns, a label is scored for the right arc alone, else for all arcs of a sentence.
    """
    if spec.task != _PARSING or not size.sentences:
        return Load()
    arc, label = _PARSERS[spec.options.parser]
    projected = 4.0 * shape.hidden * (arc + label)
    arcs = 2.0 * arc**2 * _PADDED
    labels = 2.0 * _LABELS * label**2 * (1.0 if is_learnt else _PADDED)
    heads = size.words / size.sentences + 1.0
    pairs = 2.0 * heads * (arc + (0.0 if is_learnt else _LABELS * label))
    return Load(
        operations=(projected + arcs + labels + pairs) * size.words,
        elements=_TOUCHED * labels * size.words,
    )


def forward(shape: Shape, size: Size) -> float:
    """Operations of one pass over a file."""
    if not size.sentences:
        return 0.0
    length = size.pieces / size.sentences
    # Sentences vary: the mean square of their lengths is about twice the square of the mean.
    attention = 4.0 * shape.hidden * 2.0 * length
    return shape.layers * (2.0 * shape.block + attention) * size.pieces


def frozen_share(ablation: str, shape: Shape) -> float:
    """Share of the blocks that no gradient reaches: `freeze:n`, and `freeze:n` within others."""
    numbers = re.findall(r"\bfreeze:(\d+)", ablation)
    deepest = max((int(number) for number in numbers), default=0)
    return min(1.0, deepest / shape.layers) if shape.layers else 0.0
