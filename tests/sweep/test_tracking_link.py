"""Where the report finds the MLflow runs of all trials: a file read as it is, a server asked."""

import http.server
import json
import socket
import sqlite3
import threading
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
import run_samples as made
import store_samples as make

from sweep import reporting
from sweep.opened import open_study
from sweep.tracking_link import RunLink, find_runs

RUNS = [("r1", "t1"), ("parent", ""), ("r2", "t2"), ("later", "t1")]
"""Runs of the experiment, oldest first: id -> trial; a trial may have two, the study's has none."""


class MLflow(http.server.BaseHTTPRequestHandler):
    """Answers as MLflow's REST API does: one experiment, `demo`, its runs on pages of two."""

    def do_GET(self):
        """Find an experiment by its name."""
        url = urlsplit(self.path)
        wanted = parse_qs(url.query).get("experiment_name")
        if url.path.endswith("/mlflow/experiments/get-by-name") and wanted == ["demo"]:
            found = {"experiment_id": "7", "name": "demo", "lifecycle_stage": "active"}
            return self._answer(200, {"experiment": found})
        return self._answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": self.path})

    def do_POST(self):
        """Give a page of runs."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["experiment_ids"] == ["7"]
        start = int(asked.get("page_token") or 0)
        runs = [_run(*run) for run in RUNS[start : start + 2]]
        more = {"next_page_token": str(start + 2)} if start + 2 < len(RUNS) else {}
        return self._answer(200, {"runs": runs} | more)

    def _answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Keep quiet."""


def _run(run_id, trial_id):
    info = {"run_id": run_id, "experiment_id": "7", "status": "FINISHED", "start_time": 1}
    tags = [{"key": "xling.trial_id", "value": trial_id}] if trial_id else []
    return {"info": info, "data": {"tags": tags}}


@pytest.fixture
def server():
    """The address of an MLflow on loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), MLflow)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def silent(monkeypatch):
    """A port that takes connections and never answers; asked for one second."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_server_gives_the_runs_of_all_trials(server):
    """Every page is read, of two runs of a trial the older one counts, a link names no user."""
    found = find_runs("demo", f"http://user:secret@{server}")
    assert {trial: link.run_id for trial, link in found.items()} == {"t1": "r1", "t2": "r2"}
    assert found["t2"].page == f"http://{server}/#/experiments/7/runs/r2"
    assert found["t2"].command == ""


def test_a_study_that_a_server_does_not_know_has_no_links(server):
    """No experiment of that name: no link, and no error."""
    assert find_runs("other", f"http://{server}") == {}


def test_a_file_gives_the_runs_of_all_trials(tmp_path):
    """Of two runs the older one, none from the trash or of another study; nothing is written."""
    path = tmp_path / "mlflow.db"
    uri = f"sqlite:///{path}"
    assert find_runs("demo", uri) == {}
    assert not path.exists()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "create table experiments (experiment_id integer, name text);"
            "create table runs (run_uuid text, experiment_id integer, lifecycle_stage text,"
            " start_time integer);"
            "create table tags (key text, value text, run_uuid text);"
            "insert into experiments values (4, 'demo'), (5, 'other');"
            "insert into runs values ('gone', 4, 'deleted', 1), ('r1', 4, 'active', 2),"
            " ('later', 4, 'active', 9), ('r2', 4, 'active', 3), ('o', 5, 'active', 0);"
            "insert into tags values ('xling.trial_id', 't1', 'gone'),"
            " ('xling.trial_id', 't1', 'r1'), ('xling.trial_id', 't1', 'later'),"
            " ('xling.trial_id', 't2', 'r2'), ('xling.trial_id', 't1', 'o'), ('study', 't3', 'r2');"
        )
    before = path.read_bytes()
    assert find_runs("demo", uri) == {
        "t1": RunLink(uri=uri, run_id="r1", experiment="4"),
        "t2": RunLink(uri=uri, run_id="r2", experiment="4"),
    }
    assert path.read_bytes() == before
    path.write_bytes(b"no database")
    assert find_runs("demo", uri) == {}


@pytest.fixture
def written(monkeypatch):
    """What the report was to be written from, in place of writing it."""
    calls = []
    monkeypatch.setattr(reporting, "write_report", lambda *_, **how: calls.append(how))
    monkeypatch.setattr(reporting, "study_text", lambda *_: "")  # this study has no file
    monkeypatch.setattr("sweep.opened.resolve", made.resolve)
    return SimpleNamespace(calls=calls)


def report(store, uri):
    """Report a made-up study with one finished trial, tracked at `uri`."""
    study = made.study_of(store, [1], tracking={"uri": uri})
    opened = open_study(study)
    trial = opened.trials[1]
    make.commit(make.job(store, trial.request, trial.spec))
    reporting.report_study(open_study(study), None, "made-up", [])


@pytest.mark.usefixtures("quick_disk")
def test_a_server_that_is_silent_costs_one_question(tmp_path, written, silent):
    """The report is written without links after one unanswered request, not one a trial."""
    report(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
    (call,) = written.calls
    assert (call["links"], call["links_need"]) == ({}, "")
    silent.settimeout(0)
    silent.accept()[0].close()
    with pytest.raises(BlockingIOError):
        silent.accept()


@pytest.mark.usefixtures("quick_disk")
def test_a_server_that_is_down_costs_no_report(tmp_path, written):
    """Nobody listens: the report is written without links."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    report(tmp_path, f"http://127.0.0.1:{port}")
    (call,) = written.calls
    assert call["links"] == {}
