"""A study, multiplied out: every trial of its grid, with what is to be measured on it; pure.

The order is that of use. Probes come first: they cost one forward pass and fill the similarity
page. Then seed by seed, so that the first complete table has n = 1 and every further one narrows
its intervals; within a seed ablation by ablation, `ref` first, as every other cell is read as a
difference to it; within an ablation task by task and source by source.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from sweep.complaints import StudyError, wrong_value
from sweep.identity import both_ids, cell_id, trial_id
from sweep.resolve import Resolved
from sweep.study import Study
from trainables.ablations.base import AblationError, canonical
from trainables.spec import (
    HyperParameters,
    Request,
    SimilarityRequest,
    State,
    TrialOptions,
    TrialSpec,
)

Phase = Literal["probe", "search", "report"]
"""What a trial is for."""

REFERENCE = "ref"
PROBE = "probe"
UNTRAINED = HyperParameters(learning_rate=0.0, batch_size=0, epochs=0)
"""Hyper-parameters of a probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """One trial of a study and what the study asks of it.

    Attributes:
        trial_id: Id of `spec`.
        cell_id: Id of its cell.
        spec: What to train.
        request: What to measure on it.
        phase: What it is for: `probe`, `search`, or `report`.
        is_open: A search has still to say with which hyper-parameters it is run; those of `spec`
            stand in for them, and it has no id yet.
        ended: How a trial of a search ended (`done`, `pruned`, `failed`); empty if it did not.
    """

    trial_id: str
    cell_id: str
    spec: TrialSpec
    request: Request
    phase: Phase = "report"
    is_open: bool = False
    ended: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One cell of the grid: its trials, less seed and searched hyper-parameters.

    Attributes:
        cell_id: Id of the cell.
        spec: A trial of it.
        request: What is measured on each trial that is reported.
    """

    cell_id: str
    spec: TrialSpec
    request: Request


def planned(study: Study, resolved: Resolved) -> tuple[PlannedTrial, ...]:
    """All trials of a study, in the order in which they are run.

    Raises:
        StudyError: an ablation is unknown, does not fit the encoder, or is named twice.
    """
    cells: dict[tuple[str, str, str], str] = {}  # a hash a cell, not a hash a seed
    trials = list(probes(study, resolved))
    for spec, request in _trials(study, resolved, study.seeds.report):
        cell = spec.task, spec.source, spec.ablation
        if cell in cells:
            name = trial_id(spec)
        else:
            name, cells[cell] = both_ids(spec)
        trials.append(PlannedTrial(trial_id=name, cell_id=cells[cell], spec=spec, request=request))
    return tuple(trials)


def probes(study: Study, resolved: Resolved) -> tuple[PlannedTrial, ...]:
    """The trials that train nothing."""
    return tuple(
        PlannedTrial(
            trial_id=trial_id(spec),
            cell_id=cell_id(spec),
            spec=spec,
            request=request,
            phase="probe",
        )
        for spec, request in _probes(study, resolved)
    )


def templates(study: Study, resolved: Resolved) -> tuple[Template, ...]:
    """The cells of a study, in the order of use.

    Raises:
        StudyError: an ablation is unknown, does not fit the encoder, or is named twice.
    """
    seed = study.seeds.report[0]
    return tuple(
        Template(cell_id=cell_id(spec), spec=spec, request=request)
        for spec, request in _trials(study, resolved, (seed,))
    )


def ablations(study: Study, n_layers: int) -> tuple[str, ...]:
    """The study's ablations in canonical spelling, `ref` first.

    Raises:
        StudyError: an ablation is unknown, does not fit the encoder, or is named twice.
    """
    spelt: dict[str, str] = {}
    for text in study.grid.ablation:
        try:
            name = canonical(text, n_layers)
        except (AblationError, LookupError) as error:
            what = str(error).removeprefix(f'ablation = "{text}": ')
            raise StudyError(wrong_value(study.file, "grid.ablation", text, what)) from None
        if name in spelt:
            what = f"the same as '{spelt[name]}'. Name it once."
            raise StudyError(wrong_value(study.file, "grid.ablation", text, what))
        spelt[name] = text
    return tuple(sorted(spelt, key=lambda name: name != REFERENCE))


def _probes(study: Study, resolved: Resolved) -> Iterator[tuple[TrialSpec, Request]]:
    """The pretrained encoder as it is: one trial for the whole study, as it knows no task.

    Windows are those of the first task.
    """
    similarity = _similarity(study, resolved, "pretrained", study.grid.source)
    if similarity is None:
        return
    first = study.settings(study.grid.task[0]).options
    spec = TrialSpec(
        task=PROBE,
        encoder=resolved.encoder,
        source="",
        train=None,
        dev=None,
        ablation=REFERENCE,
        hyper=UNTRAINED,
        seed=0,
        # The only options that touch an encoder at rest; every further one would split the probe.
        options=TrialOptions(max_length=first.max_length, overlap=first.overlap),
    )
    yield spec, Request(similarity=similarity)


def _trials(
    study: Study, resolved: Resolved, seeds: Iterable[int]
) -> Iterator[tuple[TrialSpec, Request]]:
    settings = {task: study.settings(task) for task in study.grid.task}
    requests = {
        (task, source): Request(
            targets=resolved.targets[task],
            similarity=_similarity(study, resolved, "fine-tuned", (source,)),
            keep=study.keep,
            sentences=study.evaluate.sentences,
        )
        for task in study.grid.task
        for source in study.grid.source
    }
    names = ablations(study, resolved.encoder.n_layers)
    for seed in seeds:
        for ablation in names:
            for (task, source), request in requests.items():
                spec = TrialSpec(
                    task=task,
                    encoder=resolved.encoder,
                    source=source,
                    train=resolved.train[task, source],
                    dev=resolved.dev[task, source],
                    ablation=ablation,
                    hyper=settings[task].hyper,
                    seed=seed,
                    options=settings[task].options,
                    precision=settings[task].precision,
                )
                yield spec, request


def _similarity(
    study: Study, resolved: Resolved, state: State, sources: tuple[str, ...]
) -> SimilarityRequest | None:
    """What to compare in one state of the encoder; None when the study does not ask for it."""
    wanted = study.similarity
    if wanted is None or state not in wanted.states:
        return None
    languages = tuple(ref.language for ref in resolved.parallel)
    return SimilarityRequest(
        parallel=resolved.parallel,
        pivots=languages if wanted.pairs == "all" else sources,
        measures=wanted.measures,
        null_draws=wanted.null_draws,
        unmatched=wanted.unmatched,
    )
