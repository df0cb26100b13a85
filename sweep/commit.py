"""Make a trial's rows visible: one file a commit, in one atomic step, the first one wins."""

import importlib.metadata
import json
import logging
import os
import socket
import subprocess
import uuid
from datetime import datetime
from functools import cache
from pathlib import Path

from analysis.layout import COMMIT_NAME, Folder, decode_commit
from analysis.rowfiles import TableError, encode_commit
from sweep.rows import Row, child_rows, failure_row, result_row
from sweep.storage import Store
from trainables.spec import Job, TrialResult

KEPT = "best.safetensors"
"""Name of kept weights in the trial's folder of checkpoints, as `trainables.checkpoint` has it."""

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow", "xling-sweep")
"""Packages that numbers may depend on; their versions are in every row."""

CODE_VARIABLE = "XLING_CODE_VERSION"
"""What a driver tells workers that got its code without its repository."""

log = logging.getLogger(__name__)


def commit_path(commit_id: str) -> str:
    """Where a commit lies below the store."""
    return f"commits/{commit_id[:2]}/{commit_id}.parquet"


def commit_result(job: Job, result: TrialResult, started: datetime, finished: datetime) -> str:
    """Commit what a job measured. Of several commits of one job, the first stays.

    Args:
        job: What was asked.
        result: What came out; one that was pruned is committed apart, as it is no whole result.
        started: With time zone.
        finished: With time zone.

    Returns:
        The commit's id: the job's, for a whole result.

    Raises:
        StorageError: the store cannot be written; nothing became visible.
    """
    store = Store(job.store)
    kept = Folder(job.workspace.checkpoints).exists(KEPT)
    row = result_row(job, result, started, finished, kept=kept)
    row |= _circumstances() | {"pid": os.getpid()}
    data = encode_commit(row, child_rows(job, result))
    return _publish(store, row["commit_id"], data)


def commit_failure(
    job: Job,
    kind: str,
    error: str,
    *,
    traceback: str = "",
    started: datetime,
    finished: datetime,
) -> str:
    """Commit that an attempt failed. A later success supersedes it.

    Args:
        job: What was attempted.
        kind: `user`, `out-of-memory`, `preempted` or `unknown`.
        error: The message.
        traceback: Where; may be empty.
        started: With time zone.
        finished: With time zone.

    Returns:
        The commit's id. It ends in a random part, as attempts are counted anew in every run.

    Raises:
        StorageError: the store cannot be written; nothing became visible.
    """
    commit_id = f"{job.job_id}.failed-{job.attempt}-{uuid.uuid4().hex[:8]}"
    row = failure_row(
        job,
        kind,
        error,
        traceback=traceback,
        started=started,
        finished=finished,
        commit_id=commit_id,
    )
    data = encode_commit(row | _circumstances(), {})
    return _publish(Store(job.store), commit_id, data)


def _publish(store: Store, commit_id: str, data: bytes) -> str:
    path = commit_path(commit_id)
    if not COMMIT_NAME.fullmatch(path):
        raise ValueError(
            f"job id '{commit_id}' cannot name a file. Ids are made by sweep.identity."
        )
    if store.publish_new(path, data):
        return commit_id
    try:
        decode_commit(store.read(path), commit_id, path)
    except FileNotFoundError:
        pass  # compacted this moment: it was whole
    except TableError as error:
        # In its way, a torn file would make the trial start again for ever.
        to = f"torn/{commit_id}.{uuid.uuid4().hex[:8]}.parquet"
        log.warning("%s. Moved to %s; the new result takes its place.", error, to)
        store.move(path, to)
        store.publish_new(path, data)
    return commit_id


def _circumstances() -> Row:
    """Columns that say where and with what code a row was made."""
    return {"host": socket.gethostname(), "git_commit": code_version(), "versions": versions()}


@cache
def code_version() -> str:
    """Commit of the code that runs, `+` after it when files were changed; else our version."""
    if told := os.environ.get(CODE_VARIABLE):
        return told
    here = Path(__file__).resolve().parent
    git = ["git", "--no-optional-locks", "-C", str(here)]
    try:
        # Only if this very file is tracked: the code may be installed below another checkout.
        _ask([*git, "ls-files", "--error-unmatch", __file__])
        commit = _ask([*git, "rev-parse", "HEAD"])
        changed = _ask([*git, "status", "--porcelain", "--untracked-files=no"])
    except (OSError, subprocess.SubprocessError):
        return f"xling-sweep {_version('xling-sweep')}"
    return commit + ("+" if changed else "")


def _ask(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603 - fixed words and our own path
    return done.stdout.strip()


@cache
def versions() -> str:
    """Versions of Python packages, as JSON."""
    return json.dumps({name: _version(name) for name in PACKAGES}, sort_keys=True)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
