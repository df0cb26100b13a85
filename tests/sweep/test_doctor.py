"""`sweep doctor`: what is wrong is found, and what is right is left as it was."""

import http.server
import importlib.metadata
import json
import os
import resource
import socket
import threading

import pytest
from run_samples import study_of

from sweep import cli
from sweep.doctor import examination, machine, places, services, software
from sweep.doctor.finding import Finding, size
from sweep.storage import Store


def by_topic(findings):
    """Topic -> finding."""
    return {finding.topic: finding for finding in findings}


def test_the_store_is_tried_and_left_as_it_was(tmp_path):
    """A folder that was not there is not there afterwards; one that was keeps what it had."""
    found = by_topic(places.storage(str(tmp_path / "new" / "store")))
    assert {f.status for f in found.values()} <= {"ok", "warn"}
    assert "atomic" in found["store"].found
    assert not (tmp_path / "new" / "store").exists()
    (tmp_path / "kept").write_text("x")
    assert by_topic(places.storage(str(tmp_path)))["locks"].status == "ok"
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["kept"]


def test_a_store_below_a_file_is_refused(tmp_path):
    """What cannot be written fails with the reason; root may write anywhere, so a file is used."""
    (tmp_path / "file").write_text("x")
    found = by_topic(places.storage(str(tmp_path / "file" / "store")))["store"]
    assert found.status == "fail"
    assert "file" in found.found
    assert by_topic(places.storage("nonsense://x"))["store"].status == "fail"


def test_a_store_that_replaces_files_fails(tmp_path, monkeypatch):
    """A storage on which the second of two writers wins would lose results."""

    def replacing(self, path, data):
        self.publish(path, data)
        return True

    monkeypatch.setattr(Store, "publish_new", replacing)
    found = by_topic(places.storage(str(tmp_path)))["store"]
    assert found.status == "fail"
    assert "was replaced" in found.found


def test_a_store_with_another_clock_is_told(tmp_path, monkeypatch):
    """Ten minutes between the store's clock and ours is worth a warning, a second is not."""
    now = places.time.time
    monkeypatch.setattr(places.time, "time", lambda: now() + 600)
    clock = by_topic(places.storage(str(tmp_path)))["clock"]
    assert (clock.status, "600 s" in clock.found) == ("warn", True)


def test_little_and_no_space(monkeypatch):
    """Half a gigabyte is too little to run, five are worth knowing about."""
    for free, status in ((1e8, "fail"), (1e9, "warn"), (1e10, "ok")):
        usage = type("Usage", (), {"free": free})
        monkeypatch.setattr(places.shutil, "disk_usage", lambda _, usage=usage: usage)
        assert by_topic(places.cache())["cache"].status == status
    assert size(1.5e9) == "1.5 GB"
    assert size(2e6) == "2 MB"


def test_data_that_are_named_are_looked_for(tmp_path, monkeypatch):
    """XLING_DATA must be a folder; a study's missing files are listed with it."""
    monkeypatch.setenv("XLING_DATA", str(tmp_path / "nowhere"))
    assert by_topic(places.data(None))["data"].status == "fail"
    monkeypatch.setenv("XLING_DATA", str(tmp_path))
    assert by_topic(places.data(None))["data"].status == "ok"
    found = by_topic(places.data(study_of(tmp_path, [1])))["study made-up"]
    assert found.status == "fail"
    assert "files cannot be used" in found.found
    assert "en_ewt-ud-train.conllu" in found.mend


def test_packages_are_held_against_what_we_ask_for(monkeypatch):
    """One that is missing and one that is too old are both named."""
    asked = ["torch>=2.13,<3", "no-such-package>=1", "numpy>=999", "ruff; extra == 'dev'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: asked)
    found = by_topic(software.packages())["packages"]
    assert found.status == "fail"
    assert "no-such-package is missing" in found.found
    assert "numpy" in found.found
    assert "torch" not in found.found
    assert "ruff" not in found.found


def test_pins_are_compared_without_the_build(tmp_path):
    """2.13.0+cpu is 2.13.0; another number is told with both versions."""
    pins = tmp_path / "constraints.txt"
    torch = importlib.metadata.version("torch").partition("+")[0]
    pins.write_text(f"# tested\ntorch=={torch}\nnot-installed==1.0\n")
    assert by_topic(software.pins(pins))["pins"].status == "ok"
    pins.write_text("numpy==0.0.1\n")
    found = by_topic(software.pins(pins))["pins"]
    assert (found.status, "tested: 0.0.1" in found.found) == ("warn", True)
    assert list(software.pins(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("free", "n_cores", "status"), [(8e9, 4, "ok"), (3e9, 4, "warn"), (1e8, 1, "fail")]
)
def test_memory_for_a_trial_on_each_core(monkeypatch, free, n_cores, status):
    """Two gigabytes a core are enough; less is told with how many trials fit."""
    monkeypatch.setattr(machine, "_free_memory", lambda: free)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n_cores)))
    assert by_topic(machine.memory())["memory"].status == status


def test_a_quota_of_cores_and_few_open_files(monkeypatch):
    """A container's quota below its cores and a low limit of files are worth knowing."""
    monkeypatch.setattr(machine, "_quota", lambda: 0.5)
    assert "quota of 0.5" in by_topic(machine.cores())["cores"].found
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    found = by_topic(machine.open_files())["open files"]
    assert (found.status, "at most 1024" in found.mend) == ("warn", True)


class _Version(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = "Basic dXNlcjpzZWNyZXQ="  # user:secret
        is_in = self.headers.get("Authorization") == wanted
        self.send_response(200 if self.path == "/version" and is_in else 401)
        self.end_headers()
        self.wfile.write(importlib.metadata.version("mlflow").encode())

    def log_message(self, *_):
        pass


def test_an_mlflow_server_is_asked_for_its_version(tmp_path, monkeypatch):
    """One that answers is fine; a closed port, a refusal and a folder are told; never a secret."""
    server = http.server.HTTPServer(("127.0.0.1", 0), _Version)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    host = f"127.0.0.1:{server.server_port}"
    try:
        right = by_topic(services.mlflow(str(tmp_path), f"http://user:secret@{host}"))["MLflow"]
        wrong = by_topic(services.mlflow(str(tmp_path), f"http://user:other@{host}"))["MLflow"]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert right.status == "ok"
    assert "secret" not in right.found
    assert (wrong.status, "401" in wrong.found) == ("warn", True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    closed = by_topic(services.mlflow(str(tmp_path), f"http://127.0.0.1:{port}"))["MLflow"]
    assert (closed.status, "nobody answers" in closed.found) == ("warn", True)
    assert by_topic(services.mlflow(str(tmp_path), "mlruns"))["MLflow"].status == "fail"
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    default = by_topic(services.mlflow(str(tmp_path)))["MLflow"]
    assert "made by the first run" in default.found
    assert not list(tmp_path.iterdir())
    (tmp_path / "mlflow.db").write_text("no database at all" * 100)
    assert by_topic(services.mlflow(str(tmp_path)))["MLflow"].status == "warn"


def test_a_check_that_breaks_is_a_finding():
    """One broken check does not keep the others from being made."""

    def broken():
        raise ZeroDivisionError("x")

    asked = []
    found = list(
        examination.examined(
            [("one", broken), ("two", lambda: [Finding("two", "ok", "fine")])], asked.append
        )
    )
    assert asked == ["one", "two"]
    assert [f.status for f in found] == ["fail", "ok"]
    assert "ZeroDivisionError" in found[0].found
    assert examination.last_line(found).startswith("1 of 2 checks failed")
    assert examination.last_line(found[1:]) == "This machine is fit to run studies."


def test_doctor_exits_by_what_it_finds(tmp_path, capsys, monkeypatch):
    """0 where a study can run, 1 where it cannot; as JSON the findings are all of stdout."""
    monkeypatch.delenv("XLING_DATA", raising=False)
    assert cli._code(["doctor", "--quick", "--storage", str(tmp_path / "s")]) == 0
    assert "fit to run studies" in capsys.readouterr().out
    monkeypatch.setenv("XLING_DATA", str(tmp_path / "nowhere"))
    assert cli._code(["doctor", "--quick", "--json", "--storage", str(tmp_path / "s")]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["is_fit"] is False
    assert [f["topic"] for f in told["findings"] if f["status"] == "fail"] == ["data"]


def test_the_accelerators_of_this_machine():
    """Whatever there is, each finding has a topic of its own and none breaks."""
    found = list(machine.accelerators())
    assert found
    assert len(by_topic(found)) == len(found)


@pytest.mark.parametrize(
    ("pid", "word"), [("self", "trials on a share overlap"), ("0", "no daemon")]
)
def test_a_dead_mps_daemon_is_none(monkeypatch, tmp_path, pid, word):
    """What a daemon left behind when it died is not taken for one, as trials do not take it."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    (tmp_path / "control").touch()
    own = str(os.getpid()) if pid == "self" else pid
    (tmp_path / "nvidia-cuda-mps-control.pid").write_text(own)
    (found,) = machine.accelerators()
    assert word in found.found


@pytest.mark.ray
def test_ray_is_started_and_a_cluster_that_is_not_there_is_told(monkeypatch):
    """A Ray of our own runs a task; nobody at RAY_ADDRESS fails with what to do."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    own = by_topic(services.ray())["Ray"]
    assert own.status == "ok", own.found
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    other = by_topic(services.ray())["Ray"]
    assert other.status == "fail"
    assert "unset RAY_ADDRESS" in other.mend
