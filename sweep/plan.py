"""What a study would compute, what is known already, and what the rest costs; pure."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

import pyarrow as pa

from sweep.grid import PROBE, REFERENCE, PlannedTrial
from sweep.study import Study
from trainables.data.treebanks import language_of
from trainables.spec import Request, TrialSpec

Work = Literal["train", "measure", "done"]
"""What is left of a trial: train it; only measure on weights that are there; nothing."""


class Known(Protocol):
    """What a plan asks the ledger (`sweep.ledger.Ledger`)."""

    def missing(self, trial_id: str, spec: TrialSpec, request: Request) -> Request | None:
        """What of the request is not committed yet; None when all is."""
        ...

    def has_trained(self, trial_id: str) -> bool:
        """A finished training of this trial is committed."""
        ...

    def has_weights(self, trial_id: str) -> bool:
        """The trial's weights were kept, so that it need not be trained again."""
        ...

    def table(self, name: str) -> pa.Table:
        """One of the tables of `analysis.schema`, each row once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """One trial of a plan.

    Attributes:
        trial: The trial, with all that the study asks of it.
        work: What is left of it.
        request: What is still to be measured; None when nothing is.
        is_again: It was trained before, but its weights were not kept.
        seconds: Expected duration on one worker; None when nothing comparable was measured.
    """

    trial: PlannedTrial
    work: Work
    request: Request | None
    is_again: bool = False
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A study against what its store holds.

    Attributes:
        study: Name of the study.
        store: Root of the store.
        trials: All trials, in the order in which they are run.
        notes: What the study, as it is, will not be able to show.
    """

    study: str
    store: str
    trials: tuple[Left, ...]
    notes: tuple[str, ...]

    @property
    def left(self) -> tuple[Left, ...]:
        """Trials with something left to do."""
        return tuple(trial for trial in self.trials if trial.work != "done")

    @property
    def counts(self) -> Counter[str]:
        """Trials by what is left of them."""
        return Counter(trial.work for trial in self.trials)

    @property
    def n_cells(self) -> int:
        """Cells of the grid; the probe is none."""
        return len({t.trial.cell_id for t in self.trials if t.trial.spec.task != PROBE})

    @property
    def n_searching(self) -> int:
        """Trials that only search for hyper-parameters."""
        return sum(left.trial.phase == "search" for left in self.trials)

    @property
    def n_open(self) -> int:
        """Trials whose hyper-parameters a search has still to find."""
        return sum(left.trial.is_open for left in self.trials)

    @property
    def n_again(self) -> int:
        """Trials that are trained once more for want of their weights."""
        return sum(trial.is_again for trial in self.left)

    @property
    def seconds(self) -> float:
        """Expected sum of the durations of what is left, of the trials that have a price."""
        return sum(trial.seconds or 0.0 for trial in self.left)

    @property
    def n_unpriced(self) -> int:
        """Trials left that nothing measured so far compares with."""
        return sum(trial.seconds is None for trial in self.left)


def make_plan(study: Study, trials: Sequence[PlannedTrial], known: Known, store: str = "") -> Plan:
    """Hold a study's trials against what is known."""
    prices = _prices(known.table("trials"), study)
    return Plan(
        study=study.name,
        store=store,
        trials=tuple(_left(trial, known, prices) for trial in trials),
        notes=tuple(_notes(study)),
    )


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan for scripts: counts, price in seconds, and every trial with its id."""
    return {
        "study": plan.study,
        "store": plan.store,
        "cells": plan.n_cells,
        "trials": len(plan.trials),
        "search": plan.n_searching,
        "open": plan.n_open,
        **{work: plan.counts[work] for work in ("train", "measure", "done")},
        "trained_again": plan.n_again,
        "seconds": None if plan.n_unpriced else plan.seconds,
        "unpriced": plan.n_unpriced,
        "notes": list(plan.notes),
        "list": [
            {
                "trial_id": left.trial.trial_id,
                "cell_id": left.trial.cell_id,
                "task": left.trial.spec.task,
                "source": left.trial.spec.source,
                "ablation": left.trial.spec.ablation,
                "seed": left.trial.spec.seed,
                "phase": left.trial.phase,
                "open": left.trial.is_open,
                "ended": left.trial.ended,
                "work": left.work,
                "targets": [ref.code for ref in left.request.targets] if left.request else [],
                "similarity": bool(left.request and left.request.similarity),
                "seconds": left.seconds,
            }
            for left in plan.trials
        ],
    }


def by_cell(plan: Plan) -> dict[tuple[str, str, str], Counter[str]]:
    """(task, source, ablation) -> trials by what is left of them, in the order of the plan.

    Trials of a search count apart: `search left`, `search done`, `search pruned`, `search failed`.
    """
    cells: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for left in plan.trials:
        spec, is_search = left.trial.spec, left.trial.phase == "search"
        counts = cells[spec.task, spec.source, spec.ablation]
        counts[f"search {left.trial.ended or 'left'}" if is_search else left.work] += 1
    return dict(cells)


def _left(trial: PlannedTrial, known: Known, prices: Mapping[tuple[Any, ...], float]) -> Left:
    if trial.ended:
        return Left(trial=trial, work="done", request=None)
    if trial.is_open:
        seconds = prices.get(_kind("train", trial.spec))
        return Left(trial=trial, work="train", request=trial.request, seconds=seconds)
    request = known.missing(trial.trial_id, trial.spec, trial.request)
    if request is None:
        return Left(trial=trial, work="done", request=None)
    is_measured = trial.spec.train is None or known.has_weights(trial.trial_id)
    work: Work = "measure" if is_measured else "train"
    return Left(
        trial=trial,
        work=work,
        request=request,
        is_again=work == "train" and known.has_trained(trial.trial_id),
        seconds=prices.get(_kind(work, trial.spec)),
    )


def _kind(work: Work, spec: TrialSpec) -> tuple[Any, ...]:
    """Trials of one kind cost about the same."""
    train = spec.train.code if spec.train is not None else ""
    return work, spec.task, spec.encoder.fingerprint, train, _size(spec)


def _size(spec: TrialSpec) -> tuple[int, int | None]:
    return spec.hyper.epochs, spec.train.limit if spec.train is not None else None


def _prices(trials: pa.Table, study: Study) -> dict[tuple[Any, ...], float]:
    """Median seconds of each kind of work, from trials with as many threads on such a device."""
    seen: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    columns = [
        *("task", "encoder_fingerprint", "train", "spec", "status", "device", "threads"),
        *("resumed_epochs", "load_s", "train_s", "evaluate_s", "similarity_s"),
    ]
    for row in trials.select(columns).to_pylist():
        on_cpu = row["device"] == "cpu"
        comparable = row["threads"] == study.resources.threads and on_cpu == (
            not study.resources.gpus
        )
        if row["status"] != "done" or not comparable or row["resumed_epochs"]:
            continue
        spec = json.loads(row["spec"])
        size = spec["hyper"]["epochs"], (spec.get("train") or {}).get("limit")
        kind = row["task"], row["encoder_fingerprint"], row["train"], size
        looking = row["load_s"] + row["evaluate_s"] + row["similarity_s"]
        seen["measure", *kind].append(looking)
        if row["train_s"] > 0 and row["train"]:
            seen["train", *kind].append(looking + row["train_s"])
    return {kind: median(seconds) for kind, seconds in seen.items()}


def _notes(study: Study) -> Iterable[str]:
    if REFERENCE not in study.grid.ablation:
        yield f"no '{REFERENCE}' among the ablations: nothing to take differences from."
    untested: dict[str, list[str]] = {}
    for task in study.grid.task:
        targets = {language_of(target) for target in study.target_codes(task)}
        for source in study.grid.source:
            if source not in targets:
                untested.setdefault(source, []).append(task)
    for source, tasks in untested.items():
        of = f" of {', '.join(tasks)}" if len(tasks) < len(study.grid.task) else ""
        yield f"source '{source}' is not among the targets{of}: its cross-lingual gap is undefined."
    until = study.seeds.until
    if until is not None and until.max > len(study.seeds.report):
        yield (
            f"up to {until.max - len(study.seeds.report)} more seeds a cell, where the interval of "
            f"a difference reaches further than {until.half_width}; they are not counted here."
        )
    for task in study.grid.task:
        size = study.space(task).size
        if size is not None and study.search.trials is not None and size <= study.search.trials:
            yield (
                f"the search of '{task}' has {size} points and tries {study.search.trials}: "
                'method = "grid" tries each once.'
            )
    if len(study.seeds.report) == 1 and until is None:
        yield "one seed: no spread, no intervals, no tests."
