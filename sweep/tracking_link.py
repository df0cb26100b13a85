"""Where MLflow shows one trial: looked up, never written."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sweep.tracking_trial import TRIAL_TAG
from sweep.tracking_uri import without_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLink:
    """The MLflow run of a trial.

    Attributes:
        uri: Where MLflow keeps it, without a password.
        run_id: Its id there.
        experiment: Id of its experiment there.
    """

    uri: str
    run_id: str
    experiment: str

    @property
    def page(self) -> str:
        """Address of its page: on the server, or on the one that `command` starts.

        It names no user: with a hidden password, the browser would log in with a wrong one.
        """
        root = _without_user(self.uri) if _is_server(self.uri) else "http://127.0.0.1:5000"
        return f"{root.rstrip('/')}/#/experiments/{self.experiment}/runs/{self.run_id}"

    @property
    def command(self) -> str:
        """What starts a server on it; empty where one is there already."""
        return "" if _is_server(self.uri) else f"mlflow ui --backend-store-uri {self.uri}"


def find_run(study: str, trial_id: str, uri: str) -> RunLink | None:
    """The run that shows a trial; None where there is none, or where nobody answers.

    A SQLite file is read as it is (0.01 s, and nothing is made or upgraded); a server is asked.

    Args:
        study: Name of the study, which is the name of its experiment.
        trial_id: The trial.
        uri: As `tracking_uri` gives it.
    """
    if uri.startswith("sqlite:///"):
        found = _in_file(Path(uri.removeprefix("sqlite:///")), study, trial_id)
    elif _is_server(uri):
        from sweep.tracking import run_of

        found = run_of(study, trial_id, uri)
    else:
        return None
    if found is None:
        return None
    run_id, experiment = found
    return RunLink(uri=without_secret(uri), run_id=run_id, experiment=experiment)


def find_runs(study: str, uri: str) -> dict[str, RunLink]:
    """The runs of all trials of a study, by trial id; none where nobody answers.

    Args:
        study: Name of the study, which is the name of its experiment.
        uri: As `tracking_uri` gives it.
    """
    found: dict[str, tuple[str, str]] = {}
    if uri.startswith("sqlite:///"):
        found = _all_in_file(Path(uri.removeprefix("sqlite:///")), study)
    elif _is_server(uri):
        from sweep.tracking import runs_of

        found = runs_of(study, uri)
    shown = without_secret(uri)
    return {
        trial_id: RunLink(uri=shown, run_id=run_id, experiment=experiment)
        for trial_id, (run_id, experiment) in found.items()
    }


def _without_user(uri: str) -> str:
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _is_server(uri: str) -> bool:
    return urlsplit(uri).scheme in ("http", "https")


_OF_STUDY = """
select tags.value, runs.run_uuid, runs.experiment_id from runs
join tags on tags.run_uuid = runs.run_uuid
join experiments on experiments.experiment_id = runs.experiment_id
where tags.key = ? and experiments.name = ? and runs.lifecycle_stage = 'active'
order by runs.start_time desc
"""

_OF_TRIAL = """
select runs.run_uuid, runs.experiment_id from runs
join tags on tags.run_uuid = runs.run_uuid
join experiments on experiments.experiment_id = runs.experiment_id
where tags.key = ? and tags.value = ? and experiments.name = ? and runs.lifecycle_stage = 'active'
order by runs.start_time limit 1
"""


def _in_file(path: Path, study: str, trial_id: str) -> tuple[str, str] | None:
    rows = _asked(path, _OF_TRIAL, (TRIAL_TAG, trial_id, study))
    return next(((str(run), str(experiment)) for run, experiment in rows), None)


def _all_in_file(path: Path, study: str) -> dict[str, tuple[str, str]]:
    """Trial id -> run and experiment; of two runs of a trial the older one, which came last."""
    rows = _asked(path, _OF_STUDY, (TRIAL_TAG, study))
    return {str(trial): (str(run), str(experiment)) for trial, run, experiment in rows}


def _asked(path: Path, question: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(question, values).fetchall()
    except sqlite3.Error:  # locked, or of another version: the link is a nicety
        return []
