"""The window on MLflow: one run per trial under one run per study; the only file importing mlflow.

    committed rows --Tracker--> MLflow        while the sweep runs, from a process of its own
    tables         --track-->   MLflow        afterwards: makes what is missing, completes, closes

The tables are the truth. A run is right when its tag `xling.digest` says so and it has ended, so
that a writer killed anywhere leaves a run that the next one completes.
"""

import json
import logging
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from time import time_ns
from typing import Any
from urllib.parse import urlsplit

from sweep.tracking_apart import WindowApart
from sweep.tracking_rows import Rows, TrialRows, by_trial, n_trials
from sweep.tracking_similarity import draw, heatmaps, parquet
from sweep.tracking_trial import DIGEST_TAG, PASSING_TAGS, TRIAL_TAG, Point, Shown, shown
from sweep.tracking_uri import (
    TrackingError,
    local_folder,
    reason,
    tracking_uri,
    way_out,
    without_secret,
)
from sweep.tracking_view import VIEW_KEY, experiment_note, results_view, study_note
from sweep.tracking_writer import Change, Tracked, Writer

__all__ = ["Tracked", "Tracker", "TrackingError", "track", "tracking_uri"]

STUDY_TAG = "xling.study"
_MOST_POINTS = 800
"""Points in one request; MLflow takes 1,000 entities, params and tags included."""

_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # a server's address for each trial
    "GIT_PYTHON_REFRESH": "quiet",
    # MLflow's own retries hold a call for minutes (246 s measured) before it says anything.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


class Tracker(Writer):
    """Shows a running study in MLflow.

    `submit(rows)` takes the committed rows of one trial or more and returns at once;
    `close(timeout)` ends the thread and counts what was written. See `Writer`.

    Args:
        store: Root of the result store; the default database lies in it.
        study: Name of the study.
        uri: Tracking URI of the study file; empty for `MLFLOW_TRACKING_URI` or the default.
        warn: Is told, once, that MLflow does not answer; the module's logger by default.
        pauses_s: First and longest pause between attempts.

    Raises:
        TrackingError: the URI names MLflow's file store.
    """

    def __init__(
        self,
        store: str,
        study: str,
        uri: str = "",
        *,
        warn: Callable[[str], None] | None = None,
        pauses_s: tuple[float, float] = (1.0, 60.0),
    ) -> None:
        where = tracking_uri(store, uri)

        def explain(error: Exception) -> str:
            return f"{without_secret(where)}: {reason(error, where)}"

        warn = warn or logging.getLogger(__name__).warning
        window = WindowApart(_Study.open, store, study, where)
        super().__init__(study, window, warn=warn, explain=explain, pauses_s=pauses_s)


def track(study: str, rows: Rows, *, store: str, uri: str = "") -> Tracked:
    """Make MLflow say what the tables say: create, complete and close runs; idempotent.

    Where a trial has two runs, one is moved to MLflow's trash. Runs that
    were left open by a writer that died, and of which the tables know nothing, are closed.

    Args:
        study: Name of the study.
        rows: All tables of the study's trials.
        store: Root of the result store.
        uri: As for `Tracker`.

    Returns:
        How many runs were created, completed or right already.

    Raises:
        TrackingError: the URI cannot be used, or nobody answers there.
    """
    where = tracking_uri(store, uri)
    counts: dict[Change, int] = {"created": 0, "completed": 0, "unchanged": 0}
    try:
        window = _Study.open(store, study, where, started=_start_of(rows))
        for trial in by_trial(rows):
            counts[window.write(trial)] += 1
        window.tidy()
        window.finish()
    except _mlflow_errors() as error:
        raise TrackingError(
            f"tracking.uri = {without_secret(where)!r}: {reason(error, where)}. "
            f"{sum(counts.values())} of {n_trials(rows)} trials are there. "
            f"{way_out(where, error)} Then run `sweep track {study}` again."
        ) from error
    return Tracked(**counts)


def run_of(study: str, trial_id: str, uri: str) -> tuple[str, str] | None:
    """Ids of a trial's run and of its experiment; None where there is none or nobody answers."""
    try:
        client = _client(uri)
        experiment = client.get_experiment_by_name(study)
        if experiment is None:
            return None
        where = f"tags.`{TRIAL_TAG}` = '{trial_id}'"
        for run in _runs(client, experiment.experiment_id, where):
            return str(run.info.run_id), str(experiment.experiment_id)
    except _mlflow_errors():
        return None
    return None


def runs_of(study: str, uri: str) -> dict[str, tuple[str, str]]:
    """Trial id -> ids of its run and its experiment; none where nobody answers."""
    try:
        client = _client(uri)
        experiment = client.get_experiment_by_name(study)
        if experiment is None:
            return {}
        where = str(experiment.experiment_id)
        found: dict[str, tuple[str, str]] = {}
        for run in _runs(client, where):
            trial_id = run.data.tags.get(TRIAL_TAG, "")
            if trial_id:
                found.setdefault(trial_id, (str(run.info.run_id), where))
    except _mlflow_errors():
        return {}
    return found


@dataclass(slots=True)
class _Known:
    """What we remember of a trial's run."""

    run_id: str
    folder: str
    status: str
    params: frozenset[str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]

    def is_right(self, trial: Shown) -> bool:
        return (self.tags.get(DIGEST_TAG), self.status) == (trial.digest, trial.status)


@dataclass(slots=True)
class _Study:
    """One study in one MLflow: its experiment, its parent run and its trials' runs."""

    client: Any
    uri: str
    study: str
    experiment: str
    parent: Any
    known: dict[str, _Known]
    twice: list[str]
    ended: int = 0
    unsure: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, store: str, study: str, uri: str, started: int | None = None) -> "_Study":
        """Connect, make experiment and parent run where they are missing, find the trials."""
        client = _client(uri)
        experiment = _experiment(client, store, study, uri)
        known: dict[str, _Known] = {}
        twice: list[str] = []
        parent = None
        for run in _runs(client, experiment):
            trial_id = run.data.tags.get(TRIAL_TAG, "")
            is_parent = STUDY_TAG in run.data.tags
            if is_parent and parent is None:
                parent = run
            elif is_parent or trial_id in known:
                twice.append(run.info.run_id)
            elif trial_id:
                known[trial_id] = _remembered(run)
        if parent is None:
            tags = {STUDY_TAG: study, "study": study, **_user()}
            parent = client.create_run(
                experiment, start_time=started or _now(), tags=tags, run_name=study
            )
        elif parent.info.status != "RUNNING" and started is None:
            client.update_run(parent.info.run_id, status="RUNNING")
        return cls(client, uri, study, experiment, parent, known, twice)

    def write(self, rows: TrialRows) -> Change:
        """Make a trial's run say what its rows say.

        It is RUNNING until its last artifact is there: whatever interrupts this, the next
        writer sees it and does it again. A point or param that is there already stays single.
        """
        trial = shown(rows, self.study)
        known = self._find(trial.trial_id)
        if known is not None and known.is_right(trial):
            self.ended = max(self.ended, trial.finished)
            return "unchanged"
        self.unsure.add(trial.trial_id)  # until the end: a lost answer may hide a made run
        tags = {
            **trial.tags,
            DIGEST_TAG: trial.digest,
            **_user(),
            "mlflow.parentRunId": self.parent.info.run_id,
            "mlflow.loggedArtifacts": _listed(trial),
        }
        run_id, folder = self._begin(trial, known, tags)
        self._log(run_id, trial, known, tags if known else {})
        self._attach(folder, trial)
        self.client.set_terminated(run_id, trial.status, end_time=trial.finished)
        self.unsure.discard(trial.trial_id)
        self.ended = max(self.ended, trial.finished)
        self.known[trial.trial_id] = _Known(
            run_id, folder, trial.status, frozenset(trial.params), tags, _last(trial.metrics)
        )
        return "created" if known is None else "completed"

    def finish(self) -> None:
        """Close the study's run, with its counts and a table of its cells on its page."""
        from mlflow.entities import Metric, RunTag

        run_id = self.parent.info.run_id
        runs = [(run.tags, run.metrics) for run in self.known.values()]
        note = study_note(self.study, runs)
        if self.parent.data.tags.get("mlflow.note.content") != note:
            states = [tags.get("status") for tags, _ in runs]
            counts = {f"trials/{name}": states.count(name) for name in ("done", "pruned", "failed")}
            metrics = [Metric(key, value, _now(), 0) for key, value in counts.items()]
            self.client.log_batch(
                run_id, metrics=metrics, tags=[RunTag("mlflow.note.content", note)]
            )
        ended = self.ended or self.parent.info.end_time or _now()
        self.client.set_terminated(run_id, "FINISHED", end_time=ended)
        tags = {
            "mlflow.note.content": experiment_note(self.experiment, run_id, note),
            f"mlflow.sharedViewState.{VIEW_KEY}": results_view(runs),
        }
        old = self.client.get_experiment(self.experiment).tags
        for key, value in tags.items():
            if old.get(key) != value:
                self.client.set_experiment_tag(self.experiment, key, value)

    def tidy(self) -> None:
        """Move runs that came twice to the trash; close those that no table knows."""
        for run_id in self.twice:
            self.client.delete_run(run_id)
        self.twice.clear()
        for run in self.known.values():
            if run.status == "RUNNING":
                self.client.set_terminated(run.run_id, "KILLED")
                run.status = "KILLED"

    def is_alive(self) -> bool:
        """Tell whether the server answers."""
        try:
            self.client.get_experiment(self.experiment)
        except _mlflow_errors():
            return False
        return True

    def _find(self, trial_id: str) -> _Known | None:
        if trial_id in self.unsure:
            for run in _runs(self.client, self.experiment, f"tags.`{TRIAL_TAG}` = '{trial_id}'"):
                self.known[trial_id] = _remembered(run)
                break
        return self.known.get(trial_id)

    def _begin(
        self, trial: Shown, known: _Known | None, tags: Mapping[str, str]
    ) -> tuple[str, str]:
        """Make the trial's run, or open it again: its id, and where its artifacts lie."""
        if known is not None:
            self.client.update_run(known.run_id, status="RUNNING", name=trial.name)
            for name in PASSING_TAGS:
                if name in known.tags and name not in trial.tags:
                    self.client.delete_tag(known.run_id, name)
            return known.run_id, known.folder
        run = self.client.create_run(
            self.experiment, start_time=trial.started, tags=dict(tags), run_name=trial.name
        )
        return str(run.info.run_id), str(run.info.artifact_uri)

    def _log(
        self, run_id: str, trial: Shown, known: _Known | None, tags: Mapping[str, str]
    ) -> None:
        """Send everything in one request (the points over MLflow's limit in further ones)."""
        from mlflow.entities import Metric, Param, RunTag

        points = [Metric(p.key, p.value, p.timestamp, p.step) for p in trial.metrics]
        old = known.params if known else frozenset()  # a param cannot be changed
        self.client.log_batch(
            run_id,
            metrics=points[:_MOST_POINTS],
            params=[Param(key, value) for key, value in trial.params.items() if key not in old],
            tags=[RunTag(key, value) for key, value in tags.items()],
        )
        for start in range(_MOST_POINTS, len(points), _MOST_POINTS):
            self.client.log_batch(run_id, metrics=points[start : start + _MOST_POINTS])

    def _attach(self, where: str, trial: Shown) -> None:
        # `client.log_artifacts` would first ask for the run, to learn where they lie.
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        with tempfile.TemporaryDirectory(prefix="xling-") as folder:
            for name, content in _artifacts(trial):
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            get_artifact_repository(where, tracking_uri=self.uri).log_artifacts(folder)


def _artifacts(trial: Shown) -> Iterator[tuple[str, bytes]]:
    for name, text in trial.files.items():
        yield name, text.encode()
    if trial.similarity.num_rows:
        yield "similarity/rows.parquet", parquet(trial.similarity)
        source = trial.params.get("source", "")
        for name, heatmap in heatmaps(trial.similarity, source, trial.name).items():
            yield f"similarity/{name}.png", draw(heatmap)


def _listed(trial: Shown) -> str:
    """Say to MLflow's page which artifacts are tables."""
    return json.dumps([{"path": path, "type": "table"} for path in trial.tables])


def _last(points: tuple[Point, ...]) -> dict[str, float]:
    return {point.key: point.value for point in sorted(points)}


def _remembered(run: Any) -> _Known:  # noqa: ANN401 - mlflow ships no types
    info, data = run.info, run.data
    return _Known(
        run_id=info.run_id,
        folder=info.artifact_uri,
        status=info.status,
        params=frozenset(data.params),
        tags=data.tags,
        metrics=data.metrics,
    )


def _runs(client: Any, experiment: str, where: str = "") -> Iterator[Any]:  # noqa: ANN401 - mlflow ships no types
    """All runs that are not in the trash, oldest first."""
    token = None
    while True:
        page = client.search_runs(
            [experiment],
            where,
            max_results=1000,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _client(uri: str) -> Any:  # noqa: ANN401 - mlflow ships no types
    """Connect quietly; a SQLite database is made first, whole, with a write-ahead log."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # MLflow 3.17 under SQLAlchemy 2.1 warns of MLflow's own use of a loader strategy.
    warnings.filterwarnings("ignore", message="The ``noload`` loader strategy")
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):  # set on import; their errors reach us as exceptions
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if uri.startswith("sqlite:///"):
        path = Path(uri.removeprefix("sqlite:///"))
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode=WAL")
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _experiment(client: Any, store: str, study: str, uri: str) -> str:  # noqa: ANN401 - mlflow ships no types
    found = client.get_experiment_by_name(study)
    if found is None:
        # A server keeps artifacts where it was told to; a bare database would take ./mlruns.
        location = None
        if urlsplit(uri).scheme not in ("http", "https"):
            location = (local_folder(store) / "mlflow-artifacts").as_uri()
        kind = {"mlflow.experimentKind": "custom_model_development"}
        return str(client.create_experiment(study, artifact_location=location, tags=kind))
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def _start_of(rows: Rows) -> int:
    times = [when.timestamp() for when in rows.trials["started"].to_pylist() if when is not None]
    return int(min(times) * 1000) if times else _now()


def _now() -> int:
    return time_ns() // 1_000_000


def _user() -> dict[str, str]:
    try:
        return {"mlflow.user": getuser()}
    except (KeyError, OSError):  # a container's user may have no name
        return {}


def _mlflow_errors() -> tuple[type[Exception], ...]:
    """What MLflow raises; while it makes or upgrades its tables, also what its libraries do."""
    from alembic.util import CommandError
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, CommandError, OSError, sqlite3.Error)
