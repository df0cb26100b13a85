"""How much work a trial is: operations by part, from encoder, data and settings; pure.

A forward pass costs 2 floating-point operations a weight and piece, a backward pass twice that
(Kaplan et al. 2020, arXiv:2001.08361, section 2.1), attention 4 more a layer for each pair of
pieces of a sentence and unit of width. The optimiser touches every weight at every step. Counted
too are the passes over dev after every epoch, over all targets, and over the parallel sentences.
Not counted: padding (5 % in bucketed batches), tokenising (once a node), writing checkpoints. A
model, not a measurement: what it leaves out is what `sweep.pricing.speeds` learns from the ledger.
"""

import re
from dataclasses import dataclass, field

from sweep.pricing.sizes import Shape, Size, shape_of, size_of
from trainables.registry import LEARNERS
from trainables.spec import DataRef, EncoderRef, Request, TrialSpec

_OPTIMISER = 70.0
"""Operations that a step of AdamW is worth, a weight: it waits for memory. Measured on a CPU."""

_ROWS = 30_000
"""Rows of the embedding table that a training set uses; only these are trained."""

_HEADS = {"parsing": 1.4}
"""What the task's own head and decoding add to the encoder's work; 1 where not listed."""

_LOAD_S = 0.3
"""Seconds to load encoder and tokenised data into a warm worker. Measured on a CPU: 0.05 for a tiny
encoder, 0.1 to 0.6 for one of 118 million weights."""

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
        train: Operations of training and of the looks at dev.
        evaluate: Operations of prediction on the targets and of pooling states.
        train_queue_s: Seconds of a core that feeds a GPU with `train`; no part of it on a CPU.
        evaluate_queue_s: The same of `evaluate`.
        fixed_s: Seconds of loading and comparing, on any device.
    """

    train: float
    evaluate: float
    fixed_s: float
    train_queue_s: float = 0.0
    evaluate_queue_s: float = 0.0


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
        head = _HEADS.get(spec.task, 1.0)
        train = queue_s = 0.0
        if trains and spec.train is not None and spec.dev is not None:
            size, dev = self._size(spec.train), self._size(spec.dev)
            epochs, batch = spec.hyper.epochs, max(1, spec.hyper.batch_size)
            looks = forward(shape, dev) * epochs * head
            queue_s = _READ_S * dev.sentences * epochs * head
            if spec.task in LEARNERS:  # a probe on frozen states reads the sentences once
                train = forward(shape, size) + forward(shape, dev)
                queue_s = _READ_S * (size.sentences + dev.sentences)
            else:
                frozen = frozen_share(spec.ablation, shape)
                steps = epochs * size.sentences / batch
                weights = shape.layers * shape.block + min(_ROWS, shape.vocabulary) * shape.hidden
                once = forward(shape, size) * (3.0 - 2.0 * frozen) * head
                train = once * epochs + looks
                train += _OPTIMISER * weights * (1.0 - frozen) * steps
                queue_s += _QUEUE_S * shape.layers * (1.0 - 2.0 / 3.0 * frozen) * head * steps
        parallel = request.similarity.parallel if request.similarity is not None else ()
        files = {ref.key: ref for ref in (*request.targets, *parallel)}.values()
        evaluate = sum(forward(shape, self._size(ref)) * head for ref in files)
        sentences = sum(self._size(ref).sentences for ref in files)
        compare = self._compare(request, shape) / _COMPARE
        return Work(
            train=train,
            evaluate=evaluate,
            fixed_s=_LOAD_S + compare,
            train_queue_s=queue_s,
            evaluate_queue_s=_READ_S * sentences * head,
        )

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
