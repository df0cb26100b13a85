"""One trial, top to bottom: load, ablate, fine-tune, predict, compare, report.

A trial is a pure function of its spec: same spec, same device class, same threads, same numbers,
bit for bit on the CPU, whatever ran before in the process and however often it was resumed.
"""

from collections.abc import Generator

import numpy as np

from trainables.ablations.base import apply
from trainables.accounting import Stopwatch, facts
from trainables.comparison import compare_languages
from trainables.encoders.pretrained import load_encoder
from trainables.evaluation import look
from trainables.finetuning import Learnt, untrained
from trainables.materials import Materials
from trainables.registry import FINE_TUNING, LEARNERS, TASKS, load
from trainables.spec import (
    CurvePoint,
    DataRef,
    Report,
    Request,
    Score,
    SentenceCounts,
    Similarity,
    TrialResult,
    TrialSpec,
    Workspace,
)


def trial_epochs(
    spec: TrialSpec, request: Request, workspace: Workspace
) -> Generator[CurvePoint, bool, TrialResult]:
    """Run one trial, pausing after every epoch.

    Args:
        spec: What to train.
        request: What to measure on it.
        workspace: Where to work.

    Yields:
        The training curve, point by point; send False to prune the trial. Nothing when nothing is
        trained: a probe, or a trial whose weights were kept.

    Returns:
        All that was measured.

    Raises:
        DataError: a file is wrong.
        AblationError: the ablation does not fit the encoder.
        Diverged: the training loss stopped being a number.
    """
    watch = Stopwatch()
    encoder = load_encoder(spec.encoder)
    materials = Materials(spec, workspace, encoder.max_positions)
    ablated = apply(encoder, spec.ablation, spec=spec)
    encoder.to(materials.device)
    materials.get_ready(*(ref for ref in (spec.train, spec.dev) if ref is not None))
    watch.lap("load")

    if spec.train is None:
        learnt = untrained(encoder, materials)
    else:
        task = load("task", spec.task, TASKS)()
        learn = load("learner", spec.task, {spec.task: FINE_TUNING, **LEARNERS})
        learnt = yield from learn(encoder, task, materials, keep=request.keep == "best")
    watch.lap("train")

    scores: tuple[Score, ...] = ()
    sentences: tuple[SentenceCounts, ...] = ()
    similarity: tuple[Similarity, ...] = ()
    if learnt.pruned_at is None:
        materials.get_ready(*_files(request))
        watch.lap("load")
        scores, sentences, states = _look_at_languages(learnt, request, materials)
        watch.lap("evaluate")
        if request.similarity is not None:
            similarity = compare_languages(request.similarity, states, learnt.model, materials)
    watch.lap("similarity")
    return TrialResult(
        best_epoch=learnt.best_epoch,
        scores=(*learnt.dev_scores, *scores),
        similarity=similarity,
        curve=learnt.curve,
        facts=facts(materials, learnt, ablated, watch),
        pruned_at=learnt.pruned_at,
        sentences=sentences,
    )


def run_trial(
    spec: TrialSpec,
    request: Request,
    workspace: Workspace,
    report: Report = lambda _: True,
) -> TrialResult:
    """Run one trial to its end; `report` hears of every epoch and may stop it by False."""
    epochs = trial_epochs(spec, request, workspace)
    try:
        point = next(epochs)
        while True:
            point = epochs.send(report(point))
    except StopIteration as end:
        result: TrialResult = end.value
        return result


def _files(request: Request) -> tuple[DataRef, ...]:
    """Every file that is to be looked at, once."""
    parallel = request.similarity.parallel if request.similarity is not None else ()
    return tuple({ref.key: ref for ref in (*request.targets, *parallel)}.values())


def _look_at_languages(
    learnt: Learnt, request: Request, materials: Materials
) -> tuple[tuple[Score, ...], tuple[SentenceCounts, ...], dict[str, np.ndarray]]:
    """Read every file once: predictions for the targets, pooled states for the parallel ones."""
    metric = ""
    if learnt.task is not None and request.sentences:
        metric = materials.spec.options.select or learnt.task.metric
    parallel = request.similarity.parallel if request.similarity is not None else ()
    pooled = {ref.key for ref in parallel}
    targets: dict[str, list[DataRef]] = {}
    for ref in request.targets:
        targets.setdefault(ref.key, []).append(ref)
    scores: list[Score] = []
    sentences: list[SentenceCounts] = []
    states: dict[str, np.ndarray] = {}
    for ref in _files(request):
        task = learnt.task if ref.key in targets else None
        materials.pace.look()
        seen = look(learnt.model, task, materials.units(ref), with_states=ref.key in pooled)
        if seen.states is not None:
            states[ref.key] = seen.states
        for target in targets.get(ref.key, ()):
            measured = learnt.measured(target, materials.corpus(ref), seen.predicted, metric)
            scores += measured[0]
            sentences += [counts for counts in measured[1:] if counts is not None]
    return tuple(scores), tuple(sentences), states
