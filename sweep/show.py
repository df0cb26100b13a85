"""One trial told on one screen: what it was, how it went, what it measured, what it left."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from analysis.layout import Folder
from sweep.cache import cache_folder
from sweep.onetrial import OneTrial, Row, find_trial, read_trial
from sweep.rows import spec_from_json
from sweep.screen import duration
from sweep.show_numbers import curve, scores, similarity
from sweep.tracking_link import RunLink, find_run
from sweep.tracking_trial import run_name
from sweep.tracking_uri import TrackingError, tracking_uri
from trainables.spec import DataRef, TrialOptions, TrialSpec

_KEY = 12
"""Letters of the widest key, and the space behind it."""

_TIMES = ("load_s", "train_s", "evaluate_s", "similarity_s")


def look_up(start: str, store: str) -> tuple[OneTrial, RunLink | None, str]:
    """Find a trial, its run in MLflow, and the folder of worker logs on this machine.

    Args:
        start: Its id or the first letters of it.
        store: Root of the store.

    Raises:
        StudyError: no trial begins like this, or several do.
        TableError: the store cannot be read.
    """
    folder = Folder(store)
    trial = read_trial(folder, find_trial(folder, start))
    study = trial.studies[0] if trial.studies else (trial.main or {}).get("study", "")
    logs = Path(cache_folder(), "logs", study)
    link = None
    if trial.main is not None:
        with suppress(TrackingError):
            link = find_run(study, trial.trial_id, tracking_uri(store, _uri(folder, study)))
    return trial, link, str(logs) if study and logs.is_dir() else ""


def _uri(folder: Folder, study: str) -> str:
    """Where the study, as it was run last, keeps its MLflow; empty for the default."""
    try:
        stored = json.loads(folder.read(f"studies/{study}/study.json"))
        return str(stored["tracking"]["uri"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ""


def as_json(trial: OneTrial, link: RunLink | None = None, logs: str = "") -> dict[str, Any]:
    """All there is, for scripts: rows as the tables hold them, times in ISO 8601."""
    main = trial.main
    return {
        "trial_id": trial.trial_id,
        "store": trial.store,
        "studies": list(trial.studies),
        "status": trial.status,
        "spec": json.loads(main["spec"]) if main else None,
        "attempts": [_plain(row, without=("spec", "hyper")) for row in trial.attempts],
        "scores": [_plain(row) for row in trial.scores],
        "similarity": [_plain(row) for row in trial.similarity],
        "curve": [_plain(row) for row in trial.curves],
        "checkpoints": [{"path": f.path, "bytes": f.size} for f in trial.checkpoints],
        "mlflow": None if link is None else {**asdict(link), "page": link.page},
        "logs": logs or None,
    }


def lines(
    trial: OneTrial, link: RunLink | None = None, logs: str = "", width: int | None = None
) -> list[str]:
    """The screen, line by line.

    Args:
        trial: The trial.
        link: Its run in MLflow; None where there is none.
        logs: Folder of worker logs on this machine; empty where there is none.
        width: Columns of the terminal; None to look.
    """
    width = width or max(80, min(120, shutil.get_terminal_size((100, 24)).columns))
    main = trial.main
    name = f": {run_name(main)}" if main else ""
    told = [f"Trial {trial.trial_id}{name}", *_keys(_head(trial), width)]
    if main is None:
        return told
    for title, body in (
        ("Spec", _keys(_spec(spec_from_json(main["spec"])), width)),
        ("Attempts", [line for row in trial.attempts for line in _attempt(row, width)]),
        ("Training", curve(trial)),
        ("Scores on test data", scores(trial, width)),
        *similarity(trial),
        ("Failure", _failure(trial, logs)),
        ("Traces", _keys(_traces(trial, main, link), width)),
    ):
        if body:
            told += ["", title, *body]
    return told


def _head(trial: OneTrial) -> Iterator[tuple[str, str]]:
    what = trial.status
    if what == "interrupted":
        what += f" at step {trial.step}; `sweep run` goes on from there"
    elif what == "failed" and trial.failure:
        what += f" ({trial.failure['failure_kind']}); `sweep run` tries again"
    elif what == "done" and trial.failure:
        what += ", but a later measurement failed"
    yield "status", what
    if trial.studies:
        yield "studies", ", ".join(trial.studies)
    yield "store", trial.store


def _spec(spec: TrialSpec) -> Iterator[tuple[str, str]]:
    encoder = spec.encoder
    print_ = encoder.fingerprint
    short = print_ if len(print_) <= 20 else f"{print_[:19]}..."  # noqa: PLR2004 - `sha256:` and some
    yield "encoder", f"{encoder.name} ({encoder.n_layers} layers, {short})"
    if spec.train:
        yield "trained on", _data(spec.train)
    if spec.dev:
        yield "selected on", _data(spec.dev)
    if spec.train:
        yield "hyper", _settings(asdict(spec.hyper))
    default = TrialOptions()
    names = [field.name for field in fields(TrialOptions)]
    own = {name: getattr(spec.options, name) for name in names}
    other = {name: value for name, value in own.items() if value != getattr(default, name)}
    yield "options", _settings({**other, "precision": spec.precision})


def _settings(values: Mapping[str, object]) -> str:
    """`learning_rate=5e-05, epochs=3`: without spaces inside, so that a line breaks between two."""
    return ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in values.items()
    )


def _data(ref: DataRef) -> str:
    part = f" [{ref.skip or ''}:{'' if ref.limit is None else ref.skip + ref.limit}]"
    cut = part if ref.skip or ref.limit is not None else ""
    return f"{ref.code} {ref.split}{cut} ({ref.fingerprint[:15]}...)"


def _attempt(row: Row, width: int) -> Iterator[str]:
    kind = {"train": "training", "measure": "measuring", "failed": "attempt"}[row["kind"]]
    if not row["train"] and row["kind"] == "train":
        kind = "probe"
    words = [f"{row['attempt']}.", f"{row['status']:<7}", f"{kind:<9}"]
    if row["finished"]:
        words.append(f"{row['finished']:%Y-%m-%d %H:%M:%S} UTC")
    if row["started"] and row["finished"]:
        words.append(f"{duration((row['finished'] - row['started']).total_seconds())}")
    words.append(f"on {row['host'] or 'an unknown host'}")
    if row["device"]:
        words.append(f"({row['device']}, {_n(row['threads'], 'thread')})")
    yield f"  {' '.join(words)}"
    parts = [f"{n[:-2]} {row[n]:.1f} s" for n in _TIMES if row[n]]
    if row["peak_memory"]:
        parts.append(f"peak memory {row['peak_memory'] / 2**20:,.0f} MiB")
    if row["train_words_per_s"]:
        parts.append(f"{row['train_words_per_s']:,.0f} words/s")
    if row["resumed_epochs"]:
        parts.append(f"{_n(row['resumed_epochs'], 'epoch')} from a checkpoint")
    if row["micro_batch"]:
        parts.append(f"micro-batch {row['micro_batch']}")
    if parts:
        yield from _wrapped(", ".join(parts), width, "     ")


def _failure(trial: OneTrial, logs: str) -> list[str]:
    row = trial.failure
    if row is None:
        return []
    told = [f"  {row['failure_kind'] or 'unknown'}, attempt {row['attempt']} on {row['host']}"]
    told += [f"  {line}" for line in (row["failure"] or "no message").splitlines()]
    trace = (row["traceback"] or "").rstrip()
    if trace:
        told += ["", *(f"  | {line}" for line in trace.splitlines())]
    if logs:
        told += ["", f"  Worker logs: {logs}"]
    return told


def _traces(trial: OneTrial, main: Row, link: RunLink | None) -> Iterator[tuple[str, str]]:
    if main["git_commit"]:
        yield "code", main["git_commit"]
    if main["versions"]:
        versions = json.loads(main["versions"])
        yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    if trial.checkpoints:
        size = sum(file.size for file in trial.checkpoints) / 2**20
        names = ", ".join(Path(file.path).name for file in trial.checkpoints)
        yield "checkpoints", f"checkpoints/{trial.trial_id}: {names} ({size:,.1f} MiB)"
    if link is not None:
        yield "MLflow", link.page
        if link.command:
            yield "", f"after: {link.command}"


def _keys(pairs: Iterator[tuple[str, str]], width: int) -> list[str]:
    """Keys in a column, their values beside, wrapped."""
    told = []
    for key, value in pairs:
        first, *rest = _wrapped(value, width, " " * (_KEY + 2))
        told += [f"  {key:<{_KEY}}{first.strip()}", *rest]
    return told


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Lines that fit, broken between words: paths and addresses stay whole."""
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [""]


def _plain(row: Row, without: Sequence[str] = ()) -> Row:
    """A row as JSON takes it: times as text, columns of JSON opened, what is not finite as null."""
    plain = {}
    for name, value in row.items():
        if name in without:
            continue
        if isinstance(value, datetime):
            value = value.isoformat()  # noqa: PLW2901 - the same value, as text
        elif isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN
            value = None  # noqa: PLW2901
        elif name in ("versions", "options") and value:
            value = json.loads(value)  # noqa: PLW2901
        plain[name] = value
    return plain


def _n(count: int | None, what: str) -> str:
    return f"{count or '?'} {what}" if count == 1 else f"{count or '?'} {what}s"
