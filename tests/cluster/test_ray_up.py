"""`ray up`, a study on two hosts and `ray down`, for real over ssh; see `rehearsal.py`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sweep.commit import code_version
from sweep.ledger import Ledger
from trainables.encoders.tiny import tiny_encoder

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.cluster]

HERE = Path(__file__).parent
NEEDED = ("sshd", "ssh", "ssh-keygen", "rsync", "curl")

STUDY = """
name = "rehearsal"
protocol = "first-align"
storage = "{folder}/results"
[encoder]
model = "{encoder}"
[data]
root = "{data}"
sources = {{ aa = "aa_toy" }}
[grid]
task = ["upos"]
source = ["aa"]
ablation = ["ref", "reinit:1-2"]
[hyper]
learning_rate = 5e-3
batch_size = 8
epochs = 2
[seeds]
report = [1, 2, 3]
[evaluate]
targets = ["aa", "bb"]
[resources]
cpus = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, toy_root):
    """What both hosts see: the study, its data, its encoder and its store."""
    made = tmp_path_factory.mktemp("rehearsal")
    encoder = tiny_encoder(made / "encoder", n_layers=4)
    study = STUDY.format(folder=made, encoder=encoder, data=toy_root)
    (made / "study.toml").write_text(study)
    return made


@pytest.fixture(scope="module")
def seen(folder, apart):
    """What `rehearsal.py` saw."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    absent = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if absent:
        pytest.skip(f"no {', '.join(absent)} (Debian: openssh-server, rsync, curl)")
    done = subprocess.run(
        [*apart, sys.executable, str(HERE / "rehearsal.py"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_check_finds_no_fault_in_what_then_works(seen):
    """`sweep cluster check` passes the very file that `ray up` takes."""
    assert "no fault found" in seen["faults"]


def test_a_study_runs_on_both_hosts(seen, folder):
    """Every trial is done, some on either host, and running it again runs nothing."""
    assert "7 of 7 trials done (7 in this run" in seen["run"]
    assert "0 in this run" in seen["again"]
    rows = Ledger(str(folder / "results")).table("trials").to_pylist()
    assert {row["host"] for row in rows} == {"head", "worker"}


def test_rows_say_which_commit_made_them(seen, folder):
    """The code travels with its repository, and what was changed in it shows."""
    assert seen["run"]
    rows = Ledger(str(folder / "results")).table("trials").to_pylist()
    assert len({row["git_commit"] for row in rows}) == 1
    if not code_version().endswith("+"):
        assert {row["git_commit"] for row in rows} == {code_version()}


def test_nothing_but_ssh_and_ray_itself_is_open(seen):
    """From beside the cluster neither MLflow nor the dashboard is reached."""
    assert seen["open"] == [22, 6379]


def test_ray_asks_for_the_token(seen):
    """With the token the cluster answers; with another one it does not."""
    assert "Active:" in seen["with token"]
    assert "Active:" not in seen["without"]


def test_mlflow_on_the_head_has_every_trial(seen):
    """The driver on the head wrote each trial to the server beside it."""
    assert seen["mlflow runs"] == 7


def test_nothing_is_left_behind(seen):
    """After `ray down` no host runs Ray."""
    assert seen["left behind"] == {"head": "", "worker": ""}
