"""What a trial measured, as rows of `analysis.schema`, and a spec as JSON and back; pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from analysis.packed import pack
from sweep.identity import cell_id
from trainables.spec import (
    CurvePoint,
    DataRef,
    EncoderRef,
    HyperParameters,
    Job,
    Score,
    SentenceCounts,
    Similarity,
    TrialOptions,
    TrialResult,
    TrialSpec,
)

OF_A_FILE = ("split", "treebank", "language", "data_key", "metric")
"""What names a measurement of one file."""

Row = dict[str, Any]
"""Column name -> value, with the columns of one schema in `analysis.schema`."""


def spec_to_json(spec: TrialSpec) -> str:
    """Write a whole spec, defaults included, so that it can be read without our code."""
    return json.dumps(asdict(spec), sort_keys=True, ensure_ascii=False)


def spec_from_json(text: str) -> TrialSpec:
    """Read what `spec_to_json` wrote; fields added since then get their defaults.

    Raises:
        ValueError: not a spec, or one that a newer version wrote.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ValueError(f"not a trial spec in JSON: {error}.") from error
    parts = {
        "encoder": EncoderRef,
        "train": DataRef,
        "dev": DataRef,
        "hyper": HyperParameters,
        "options": TrialOptions,
    }
    if not isinstance(content, dict):
        raise ValueError(f"not a trial spec: {text[:80]!r} is no JSON object.")  # noqa: TRY004 - one error for all wrong texts
    built = {
        name: _build(parts[name], value) if name in parts and value is not None else value
        for name, value in content.items()
    }
    spec: TrialSpec = _build(TrialSpec, built)
    return spec


def _build(kind: type, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an instance of `kind`
    known = {field.name for field in fields(kind)}
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }
    unknown, absent = sorted(set(values) - known), sorted(needed - set(values))
    if unknown or absent:
        raise ValueError(
            f"{kind.__name__}: unknown fields {unknown}, absent fields {absent}. "
            "The spec was written by another version of xling-sweep; read it with that one."
        )
    return kind(**values)


def result_row(
    job: Job, result: TrialResult, started: datetime, finished: datetime, *, kept: bool
) -> Row:
    """The `trials` row of a trial that came to its end, measured or pruned.

    Args:
        job: What was asked.
        result: What came out.
        started: With time zone.
        finished: With time zone.
        kept: Whether the best weights now lie beside the checkpoints.
    """
    pruned = result.pruned_at is not None
    kind = "train" if job.job_id == job.trial_id else "measure"
    row = _spec_columns(job, started, finished) | {
        "commit_id": pruned_id(job.job_id, result.pruned_at) if pruned else job.job_id,
        "kind": kind,
        "status": "pruned" if pruned else "done",
        "kept": kept,
        "best_epoch": result.best_epoch,
        "pruned_at": result.pruned_at,
    }
    return row | asdict(result.facts)


def failure_row(
    job: Job,
    kind: str,
    message: str,
    *,
    traceback: str,
    started: datetime,
    finished: datetime,
    commit_id: str,
) -> Row:
    """The `trials` row of an attempt that failed.

    Args:
        job: What was attempted.
        kind: `user`, `out-of-memory`, `preempted` or `unknown`.
        message: What went wrong, for people.
        traceback: Where; may be empty.
        started: With time zone.
        finished: With time zone.
        commit_id: Name of the committed file.
    """
    return _spec_columns(job, started, finished) | {
        "commit_id": commit_id,
        "kind": "failed",
        "status": "failed",
        "failure_kind": kind,
        "failure": message,
        "traceback": traceback,
        "threads": job.workspace.threads,
        "device": job.workspace.device,
    }


def child_rows(job: Job, result: TrialResult) -> dict[str, list[Row]]:
    """Rows of the other tables, less `trial_id` and `commit_id`, by table.

    A job that measures more on a finished trial commits only what was asked: the dev score and
    the curve of its training are there already.
    """
    scores, curve = result.scores, result.curve
    if job.job_id != job.trial_id:
        asked = {target.key for target in job.request.targets}
        scores = tuple(score for score in scores if score.data_key in asked)
        curve = ()
    return {
        "scores": _flat(scores),
        "similarity": _flat(result.similarity),
        "curves": _flat(curve),
        "sentences": [_packed(counts) for counts in result.sentences],
    }


def _flat(values: Sequence[Score] | Sequence[Similarity] | Sequence[CurvePoint]) -> list[Row]:
    """Rows of plain values; asdict looks for values within them, and takes five times as long."""
    if not values:
        return []
    names = [field.name for field in fields(values[0])]
    of = attrgetter(*names)
    return [dict(zip(names, of(value), strict=True)) for value in values]


def _packed(counts: SentenceCounts) -> Row:
    """A row of `sentences`; asdict would copy every number."""
    row: Row = {name: getattr(counts, name) for name in OF_A_FILE}
    kinds = {"items": counts.items, "missed": counts.missed, "spurious": counts.spurious}
    packed = {name: None if kind is None else pack(kind) for name, kind in kinds.items()}
    return row | {"n": len(counts.items)} | packed


def pruned_id(job_id: str, epoch: int | None) -> str:
    """Commit id of a pruned trial: not the job's, which belongs to a whole result alone."""
    return f"{job_id}.pruned-{epoch}"


def _spec_columns(job: Job, started: datetime, finished: datetime) -> Row:
    spec = job.spec
    return {
        "trial_id": job.trial_id,
        "study": job.study,
        "task": spec.task,
        "encoder": spec.encoder.name,
        "encoder_fingerprint": spec.encoder.fingerprint,
        "source": spec.source,
        "train": spec.train.code if spec.train else "",
        "ablation": spec.ablation,
        "seed": spec.seed,
        "cell": cell_id(spec),
        "hyper": json.dumps(asdict(spec.hyper), sort_keys=True),
        "spec": spec_to_json(spec),
        "attempt": job.attempt,
        "phase": job.phase,
        "started": started,
        "finished": finished,
    }
