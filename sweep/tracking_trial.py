"""What MLflow shows of one trial: rows of the tables in, names and numbers out; pure.

    rows of a trial --shown--> Shown: name, params, tags, metrics, artifacts, digest

Values have six digits: the page stays legible, and the tables hold the rest.
Every metric carries the time of the trial's end and, per row that went into it, one more
millisecond: a mean over more targets is newer than the one over fewer, and writing the same
rows again writes the same points, which the store keeps once.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from statistics import fmean
from typing import Any

import pyarrow as pa

from sweep.tracking_rows import Row, TrialRows
from sweep.tracking_similarity import pairs, tables

LAYOUT = 1
"""Raised when the same rows are to be shown otherwise: every run is then written again."""

TRIAL_TAG = "xling.trial_id"
DIGEST_TAG = "xling.digest"
RUN_STATUS = {"done": "FINISHED", "pruned": "KILLED", "failed": "FAILED"}
PASSING_TAGS = ("failure", "failure_kind", "pruned_at")
"""Tags that a later row of the same trial may take back."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FACTS = (
    "load_s",
    "train_s",
    "evaluate_s",
    "similarity_s",
    "matmul_s",
    "peak_memory",
    "train_words_per_s",
    "resumed_epochs",
    "n_train",
    "n_parameters",
    "n_reinitialised",
    "n_frozen",
)


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """One value of a metric; `timestamp` in milliseconds since 1970."""

    key: str
    step: int
    timestamp: int
    value: float


@dataclass(frozen=True)
class Shown:
    """All that one run of MLflow holds of a trial; pictures and tables are made on demand."""

    trial_id: str
    name: str
    status: str
    started: int
    finished: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: tuple[Point, ...]
    files: Mapping[str, str]
    similarity: pa.Table

    @cached_property
    def digest(self) -> str:
        """What decides whether a run must be written again: equal for equal rows."""
        content = (
            LAYOUT,
            self.name,
            self.status,
            sorted(self.params.items()),
            sorted(self.tags.items()),
            [(p.key, p.step, p.timestamp, p.value.hex()) for p in self.metrics],
            sorted(self.files.items()),
        )
        return sha256(json.dumps(content).encode()).hexdigest()[:16]

    @property
    def tables(self) -> tuple[str, ...]:
        """Paths of the artifacts that MLflow shows as tables."""
        return tuple(sorted(path for path in self.files if path.startswith("similarity/")))


def shown(rows: TrialRows, study: str) -> Shown:
    """Decide names, params, tags, metrics and files of one trial's run."""
    trial = rows.trial
    finished = milliseconds(trial["finished"]) or milliseconds(trial["started"]) or 0
    points = [*_curve(rows.curves, trial, finished), *_scores(rows.scores, trial, finished)]
    points += _similarity(rows.similarity, trial, finished)
    points += [
        Point(f"facts/{name}", 0, finished, float(trial[name]))
        for name in _FACTS
        if trial[name] is not None and math.isfinite(trial[name])
    ]
    return Shown(
        trial_id=trial["trial_id"],
        name=run_name(trial),
        status=RUN_STATUS[trial["status"]],
        started=milliseconds(trial["started"]) or finished,
        finished=finished,
        params=_params(trial),
        tags=_tags(rows, study),
        metrics=tuple(sorted(points)),
        files=dict(_files(rows)),
        similarity=rows.similarity,
    )


def run_name(trial: Row) -> str:
    """Name a trial for people: `upos en reinit:1-2 seed 1`, or `pretrained mbert` for a probe."""
    if trial["task"] == "probe":
        return f"pretrained {trial['encoder'].rstrip('/').rsplit('/', 1)[-1]}"
    return f"{trial['task']} {trial['source']} {trial['ablation']} seed {trial['seed']}"


def milliseconds(when: datetime | None) -> int | None:
    """Milliseconds since 1970 of a time in UTC."""
    return None if when is None else (when - _EPOCH) // (datetime.resolution * 1000)


def _params(trial: Row) -> dict[str, str]:
    names = (
        "task",
        "encoder",
        "encoder_fingerprint",
        "source",
        "train",
        "ablation",
        "seed",
    )
    spec = _json(trial["spec"])
    params = {name: trial[name] for name in names} | _json(trial["hyper"])
    params |= {f"options.{key}": value for key, value in (spec.get("options") or {}).items()}
    params |= {"precision": spec["precision"]} if "precision" in spec else {}
    return {
        key_of(key): str(value)[:500] for key, value in params.items() if value not in ("", None)
    }


def _tags(rows: TrialRows, study: str) -> dict[str, str]:
    trial, failure = rows.trial, rows.failures[0] if rows.failures else {}
    names = (
        "task",
        "source",
        "ablation",
        "seed",
        "cell",
        "phase",
        "status",
        "git_commit",
        "host",
        "pruned_at",
    )
    values = {name: trial[name] for name in names} | {
        "failure": failure.get("failure"),
        "failure_kind": failure.get("failure_kind"),
        TRIAL_TAG: trial["trial_id"],
        "study": study,
        "mlflow.runName": run_name(trial),
        "mlflow.source.type": "LOCAL",
        "mlflow.source.name": f"sweep run {study}",
        "mlflow.source.git.commit": trial["git_commit"],
        "mlflow.note.content": _note(rows),
    }
    return {key: str(value)[:5000] for key, value in values.items() if value not in ("", None)}


def _note(rows: TrialRows) -> str:
    """Say in a sentence or two what this run is and how it ended."""
    trial = rows.trial
    if trial["task"] == "probe":
        what = f"`{trial['encoder']}` as it was downloaded, nothing trained."
    else:
        what = (
            f"`{trial['encoder']}`, ablation `{trial['ablation']}`, fine-tuned for "
            f"{trial['task']} on {trial['train'] or trial['source']}, seed {trial['seed']}."
        )
    ends = []
    if trial["status"] == "pruned":
        ends.append(f"**Pruned** after epoch {trial['pruned_at']}: no scores, enters no mean.")
    elif trial["status"] == "done" and trial["best_epoch"]:
        ends.append(f"Epoch {trial['best_epoch']} was best on {trial['source']} dev.")
    for job in rows.failures:
        failed = "Failed" if job is trial else "Failed to measure more"
        first = (job["failure"] or "no message").splitlines()[0][:300]
        ends.append(f"**{failed}** ({job['failure_kind']}, attempt {job['attempt']}): `{first}`")
    text = " ".join([what, *ends])
    return f"{text}\n\nTrial `{trial['trial_id']}`; `sweep show {trial['trial_id']}`"


def _curve(curves: Sequence[Row], trial: Row, finished: int) -> Iterator[Point]:
    for row in curves:
        yield from _finite(
            (f"dev/{row['dev_metric']}", row["epoch"], finished, row["dev_value"]),
            ("train/loss", row["epoch"], finished, row["loss"]),
            ("train/learning_rate", row["epoch"], finished, row["learning_rate"]),
        )
        if row["epoch"] == trial["best_epoch"]:
            yield from _finite((f"{row['dev_metric']}/dev", 0, finished, row["dev_value"]))


def _scores(scores: Sequence[Row], trial: Row, finished: int) -> Iterator[Point]:
    """One point a treebank; over all: the source's score, the mean of the targets, the gap.

    The source's own treebank of the same family (`en_pud` for `fr_pud`) is what a target is
    compared with. The most items win where one treebank was scored twice (whole, and cut short).
    """
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in sorted(scores, key=lambda row: (row["n"], row["data_key"], row["commit_id"])):
        groups[row["metric"], row["split"], row["treebank"]].append(row)
    of_language: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (metric, split, treebank), rows in groups.items():
        of_language[metric, split, rows[-1]["language"]].add(treebank)
    for (metric, split, treebank), rows in groups.items():
        language = rows[-1]["language"]
        alone = len(of_language[metric, split, language]) == 1
        name = f"{metric}/{split}/{language if alone else treebank}"
        yield from _finite((name, 0, finished + len(rows) - 1, rows[-1]["value"]))
    for metric in sorted({metric for metric, split, _ in groups if split == "test"}):
        yield from _transfer(
            metric, [rows for key, rows in groups.items() if key[:2] == (metric, "test")], trial
        )


def _transfer(metric: str, treebanks: Sequence[Sequence[Row]], trial: Row) -> Iterator[Point]:
    base = milliseconds(trial["finished"]) or milliseconds(trial["started"]) or 0
    when = base + sum(map(len, treebanks)) - 1
    rows = [rows[-1] for rows in treebanks]
    sources = {family(r["treebank"]): r["value"] for r in rows if r["language"] == trial["source"]}
    targets = [r for r in rows if r["language"] != trial["source"]]
    gaps = [
        (sources[name], r["value"]) for r in targets if (name := family(r["treebank"])) in sources
    ]
    if targets:
        yield from _finite((f"{metric}/targets", 0, when, fmean(r["value"] for r in targets)))
    if gaps:
        yield from _finite(
            (f"{metric}/source", 0, when, fmean(source for source, _ in gaps)),
            (f"{metric}/gap", 0, when, fmean(source - target for source, target in gaps)),
        )


def family(treebank: str) -> str:
    """The collection a test set belongs to: `pud` of `fr_pud`, `wikiann` of `wikiann-fr`."""
    return treebank.split("_", 1)[1] if "_" in treebank else treebank.split("-", 1)[0]


def _similarity(similarity: pa.Table, trial: Row, finished: int) -> Iterator[Point]:
    """Mean over the pairs of each layer; over layers 1 to L: each language, and all (D-24)."""
    for (measure, state), values in pairs(similarity, trial["source"]).items():
        name = "cka" if measure == "linear-cka" else measure
        name = f"{name}/pretrained" if state == "pretrained" else name
        when = finished + max(len(values) - 1, 0)
        by_layer: dict[int, list[float]] = defaultdict(list)
        for target, layers in values.items():
            for layer, value in layers.items():
                by_layer[layer].append(value)
            upper = [value for layer, value in layers.items() if layer > 0]
            if upper:
                yield from _finite((f"{name}/target/{target}", 0, finished, fmean(upper)))
        means = {layer: fmean(column) for layer, column in sorted(by_layer.items())}
        yield from _finite(*((f"{name}/mean", layer, when, v) for layer, v in means.items()))
        if upper := [value for layer, value in means.items() if layer > 0]:
            yield from _finite((f"{name}/overall", 0, when, fmean(upper)))


def _files(rows: TrialRows) -> Iterator[tuple[str, str]]:
    trial = rows.trial
    yield "spec.json", json.dumps(_json(trial["spec"]), indent=2, sort_keys=True)
    environment = {
        name: trial[name]
        for name in ("host", "device", "threads", "git_commit", "encoder_fingerprint")
    }
    environment["versions"] = _json(trial["versions"])
    yield "environment.json", json.dumps(environment, indent=2, sort_keys=True)
    for job in rows.failures:
        text = job["traceback"] or job["failure"] or "no traceback was recorded"
        yield f"failures/{key_of(job['commit_id']).replace('/', '_')}.txt", text
    if rows.similarity.num_rows:
        for name, table in tables(rows.similarity, trial["source"]).items():
            yield f"similarity/{name}.json", json.dumps(table)


def key_of(text: str) -> str:
    """Make a name that MLflow takes as a key: what it refuses becomes `_`."""
    return re.sub(r"[^\w\-. :/]", "_", text)[:250]


def _finite(*points: tuple[str, int, int, float]) -> Iterator[Point]:
    for key, step, timestamp, value in points:
        if math.isfinite(value):
            yield Point(key_of(key), step, timestamp, float(f"{value:.6g}"))


def _json(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {"value": value}
