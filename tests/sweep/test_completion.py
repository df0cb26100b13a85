"""What the shell is offered at the Tab key."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import store_samples as make

from sweep.completion import complete_study, complete_trial


def test_studies_that_ship_and_files_here(tmp_path, monkeypatch):
    """Names of shipped studies come first, then study files; folders once a letter is typed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first-mine.toml").touch()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner.toml").touch()
    assert complete_study("first-align-s") == ["first-align-small"]
    assert complete_study("first-m") == ["first-mine.toml"]
    assert "pyproject.toml" not in complete_study("")
    assert complete_study("fol") == ["folder/"]
    assert complete_study("folder/") == ["folder/inner.toml"]
    assert complete_study("nowhere/") == []


@pytest.mark.usefixtures("quick_disk")
def test_trials_of_the_store_that_the_line_names(tmp_path):
    """Ids come from --storage; a store that cannot be read offers nothing and says nothing."""
    job = make.job(tmp_path, make.targets())
    make.commit(job)
    context = SimpleNamespace(params={"study": None, "storage": str(tmp_path)})
    assert complete_trial(context, job.trial_id[:3]) == [job.trial_id]
    assert complete_trial(context, "zz") == []
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "CURRENT.json").write_text("torn")
    assert complete_trial(context, "") == []


def test_the_shell_gets_its_words(tmp_path):
    """Through the installed completion, bash is offered the studies that fit."""
    environment = os.environ | {
        "_SWEEP_COMPLETE": "complete_bash",
        "COMP_WORDS": "sweep plan first-align-s",
        "COMP_CWORD": "2",
    }
    code = "from sweep.cli import app; app(prog_name='sweep')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["first-align-small"], done.stderr
