"""What answers: MLflow, Ray, the Hugging Face hub."""

import base64
import json
import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from sweep.doctor.finding import Finding
from sweep.tracking_uri import TrackingError, tracking_uri, without_secret

_PATIENCE_S = 5.0
_RAY_S = 180.0

_TRY_RAY = "import json; from sweep.tune import try_ray; print(json.dumps(try_ray()))"


def mlflow(store: str, uri: str = "") -> Iterator[Finding]:
    """Where MLflow's data would go, and whether somebody answers there."""
    try:
        where = tracking_uri(store, uri)
    except TrackingError as error:
        yield Finding("MLflow", "fail", str(error), "Or run with --no-track.")
        return
    shown = without_secret(where)
    later = "Trials are stored all the same; `sweep track` shows them later."
    if urlsplit(where).scheme in ("http", "https"):
        yield _server(where, shown, later)
        return
    path = Path(where.removeprefix("sqlite:///"))
    if not where.startswith("sqlite:///") or not path.exists():
        made = "is made by the first run" if where.startswith("sqlite") else "is not looked at here"
        yield Finding("MLflow", "ok", f"{shown} {made}")
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            n_runs = database.execute("select count(*) from runs").fetchone()[0]
    except sqlite3.Error as error:
        mend = f"Move {path} away; `sweep track` builds it again from the tables."
        yield Finding("MLflow", "warn", f"{shown}: {error}", mend)
        return
    yield Finding("MLflow", "ok", f"{shown}: {n_runs} runs")


def _server(uri: str, shown: str, later: str) -> Finding:
    parts = urlsplit(uri)
    request = urllib.request.Request(  # noqa: S310 - http(s) only
        f"{parts.scheme}://{_host(uri)}{parts.path.rstrip('/')}/version"
    )
    user = os.environ.get("MLFLOW_TRACKING_USERNAME") or parts.username
    password = os.environ.get("MLFLOW_TRACKING_PASSWORD") or parts.password
    if user:
        word = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
        request.add_header("Authorization", f"Basic {word}")
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310 - as above
            there = answer.read(100).decode(errors="replace").strip()
    except urllib.error.HTTPError as error:
        return Finding("MLflow", "warn", f"{shown}: answers {error.code} {error.reason}", later)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        mend = f"Start it (mlflow server), or mend MLFLOW_TRACKING_URI. {later}"
        return Finding("MLflow", "warn", f"{shown}: nobody answers ({reason})", mend)
    ours = version("mlflow")
    if there.split(".")[0] != ours.split(".")[0]:
        mend = f"Run a server of version {ours}."
        return Finding("MLflow", "warn", f"{shown}: version {there[:20]}, here {ours}", mend)
    return Finding("MLflow", "ok", f"{shown}: version {there}")


def _host(uri: str) -> str:
    return urlsplit(uri).netloc.rpartition("@")[2]


def ray() -> Iterator[Finding]:
    """Start a small Ray, or join the one of RAY_ADDRESS, and run a task there."""
    address = os.environ.get("RAY_ADDRESS", "")
    where = f"RAY_ADDRESS={address}" if address else "a Ray of our own"
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-c", _TRY_RAY],
            capture_output=True,
            text=True,
            timeout=_RAY_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield Finding(
            "Ray", "fail", f"{where} does not answer within {_RAY_S:.0f} s", _mend(address)
        )
        return
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        yield Finding("Ray", "fail", f"{where}: {reason[:300]}", _mend(address))
        return
    told = json.loads(done.stdout.splitlines()[-1])
    found = (
        f"{where}, version {told['version']}: {told['nodes']} node(s), {told['cpus']:g} cores, "
        f"{told['gpus']:g} GPUs; a task took {told['seconds']:.1f} s with the start"
    )
    yield Finding("Ray", "ok", found)


def _mend(address: str) -> str:
    if address:
        return (
            "Check that the cluster is up and of this Python and Ray (ray status), or unset "
            "RAY_ADDRESS."
        )
    own = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - Ray's rule
    logs = Path(own) / "ray" / "session_latest" / "logs"
    return f"See the log below {logs}; or run with --executor local."


def hub() -> Iterator[Finding]:
    """Whether the Hugging Face hub can be reached, unless nobody is to."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return
    where = constants.ENDPOINT
    request = urllib.request.Request(where, method="HEAD")  # noqa: S310 - the hub's own address
    try:
        urllib.request.urlopen(request, timeout=_PATIENCE_S).close()  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        yield Finding("hub", "ok", f"{where} answers ({error.code})")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        mend = (
            "Encoders by hub id then need to be in the cache; set HF_HUB_OFFLINE=1 to save waits."
        )
        yield Finding("hub", "warn", f"{where} cannot be reached ({reason})", mend)
    else:
        yield Finding("hub", "ok", f"{where} answers")
