"""One trial on one screen: found by the start of its id, read whole, told truly."""

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest
import store_samples as make

from analysis.layout import Folder
from sweep import cli
from sweep.compact import compact
from sweep.complaints import StudyError
from sweep.onetrial import find_trial, known_ids, read_trial
from sweep.show import as_json, lines, look_up
from sweep.sparkline import sparkline
from sweep.storage import Store
from sweep.tracking_link import RunLink, find_run

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def store(tmp_path):
    """A store with a trial that failed once, was trained, and was measured again; and a probe."""
    first = make.job(tmp_path, make.targets("en_pud", "de_pud"))
    make.fail(first, at=make.NOON)
    make.commit(first, value=0.75)
    make.commit(make.more(first, make.targets("fr_pud")), value=0.25, finished=make.TWO)
    make.commit(make.job(tmp_path, make.similarity("en_pud", "de_pud"), make.probe()))
    return tmp_path


def trial(store, spec=None):
    """The trial of a spec as the store has it."""
    return read_trial(Folder(store), make.job(store, make.targets(), spec or make.spec()).trial_id)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_trial_is_read_with_all_its_attempts(store, is_compacted):
    """Attempts come oldest first, superseded ones too; each measurement comes once."""
    if is_compacted:
        compact(Store(str(store)))
    found = trial(store)
    assert [row["kind"] for row in found.attempts] == ["failed", "train", "measure"]
    assert found.status == "done"
    assert found.failure is None  # it was trained after that
    tests = [row for row in found.scores if row["split"] == "test"]
    assert {row["treebank"]: row["value"] for row in tests} == {
        "en_pud": 0.75,
        "de_pud": 0.75,
        "fr_pud": 0.25,
    }
    assert [row["epoch"] for row in found.curves] == [1, 2]


def test_the_first_letters_of_an_id_suffice(store):
    """A unique beginning, capitals and the id of a further job all name the trial."""
    folder = Folder(store)
    whole = make.job(store, make.targets()).trial_id
    assert find_trial(folder, whole[:5]) == whole
    assert find_trial(folder, whole[:5].upper()) == whole
    assert find_trial(folder, f"{whole}+abc.failed-1-x") == whole


def test_what_names_no_trial_or_several_is_refused(tmp_path):
    """The message lists the trials that fit, or says what the store holds."""
    folder = Folder(tmp_path)
    with pytest.raises(StudyError, match="holds no trial"):
        find_trial(folder, "ab")
    for seed in range(20):
        make.commit(make.job(tmp_path, make.targets(), make.spec(seed)))
    ids = sorted(known_ids(folder))
    assert len(ids) == 20
    letter = next(i[0] for i, j in pairwise(ids) if i[0] == j[0])
    with pytest.raises(StudyError, match=r"trials begin so: .*Say more"):
        find_trial(folder, letter)
    with pytest.raises(StudyError, match="not in the store"):
        find_trial(folder, "no-such-trial")
    wrong = ids[0][:7] + ("0" if ids[0][7] != "0" else "1") + ids[0][8:]
    with pytest.raises(StudyError, match=f"Did you mean '{ids[0][:12]}'"):
        find_trial(folder, wrong)
    with pytest.raises(StudyError, match="not in the store"):
        find_trial(folder, "")


def test_a_trial_that_failed_shows_its_traceback(tmp_path):
    """Failure kind, message and traceback of the last attempt are on the screen."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.fail(job, "out-of-memory", "no room\nat all")
    found = trial(tmp_path)
    assert found.status == "failed"
    told = "\n".join(lines(found, logs="/logs/demo"))
    assert "failed (out-of-memory); `sweep run` tries again" in told
    assert "  no room\n  at all\n" in told
    assert "| tb" in told
    assert "/logs/demo" in told


def test_a_trial_that_was_asked_for_and_not_run(tmp_path):
    """A study's list of trials makes an id known; without rows it was not run yet."""
    store = Store(str(tmp_path))
    store.publish("studies/s/trials.json", json.dumps(["abc123"]).encode())
    found, link, _ = look_up("abc", str(tmp_path))
    assert (found.status, found.studies, link) == ("not run yet", ("s",), None)
    assert lines(found)[:2] == ["Trial abc123", "  status      not run yet"]
    store.publish("checkpoints/abc123/step-000000012.safetensors", b"x")
    told = lines(read_trial(Folder(tmp_path), "abc123"))
    assert "interrupted at step 12; `sweep run` goes on from there" in told[1]


def test_scores_end_in_mean_and_gap(store):
    """Mean of others is (0.75 + 0.25) / 2; the gap is 0.75 less that."""
    told = {line[2:18].strip(): line.split()[-1] for line in lines(trial(store)) if line}
    assert told["mean of others"] == "0.5000"
    assert told["gap"] == "0.2500"


def test_many_metrics_stay_within_the_terminal(tmp_path):
    """Metrics that do not fit beside each other go into a second block, at 80 columns too."""
    job = make.job(tmp_path, make.targets("en_pud", "de_pud"))
    one = make.result(job.request)
    names = ("las", "uas", "las_full", "las_no_punct", "uas_no_punct", "a_very_long_metric_name")
    scores = [replace(score, metric=name) for score in one.scores for name in names]
    make.commit(job, scores=tuple(scores))
    told = lines(trial(tmp_path), width=80)
    assert all(any(name in line for line in told) for name in names)
    numbers = [line for line in told if "_pud" in line]
    assert len(numbers) == 4
    assert max(map(len, numbers)) <= 80


def test_json_is_json_of_all_rows(store):
    """The JSON parses, holds the spec opened up, and has null where a number is undefined."""
    found = trial(store, make.probe())
    found.similarity[0]["value"] = math.nan
    told = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert told["spec"]["task"] == "probe"
    assert told["similarity"][0]["value"] is None
    assert told["attempts"][0]["finished"].startswith("2026-01-02T13:00:00")
    assert told["mlflow"] is None


def test_show_through_the_command_line(store, capsys):
    """`sweep show` prints the screen; a wrong id exits 2 with the reason alone."""
    whole = make.job(store, make.targets()).trial_id
    assert cli._code(["show", whole[:6], "--storage", str(store)]) == 0
    assert capsys.readouterr().out.startswith(f"Trial {whole}: upos en ref seed 1\n")
    assert cli._code(["show", "zz", "--storage", str(store)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_a_run_is_found_in_the_database_as_it_is(tmp_path):
    """The run of the trial is found by its tag, in its study alone, and nothing is written."""
    path = tmp_path / "mlflow.db"
    assert find_run("s", "t", f"sqlite:///{path}") is None
    assert not path.exists()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "create table experiments (experiment_id integer, name text);"
            "create table runs (run_uuid text, experiment_id integer, lifecycle_stage text,"
            " start_time integer);"
            "create table tags (key text, value text, run_uuid text);"
            "insert into experiments values (4, 's'), (5, 'other');"
            "insert into runs values ('gone', 4, 'deleted', 1), ('r', 4, 'active', 2),"
            " ('o', 5, 'active', 0);"
            "insert into tags values ('xling.trial_id', 't', 'gone'), ('xling.trial_id', 't', 'r'),"
            " ('xling.trial_id', 't', 'o'), ('study', 't', 'o');"
        )
    found = find_run("s", "t", f"sqlite:///{path}")
    assert found is not None
    assert (found.run_id, found.experiment) == ("r", "4")
    assert found.page == "http://127.0.0.1:5000/#/experiments/4/runs/r"
    assert found.command.endswith(f"--backend-store-uri sqlite:///{path}")
    path.write_bytes(b"no database")
    assert find_run("s", "t", f"sqlite:///{path}") is None


def test_a_link_on_a_server_shows_no_password():
    """The page on a server needs no command."""
    link = RunLink(uri="https://mlflow.example.org/", run_id="r", experiment="4")
    assert link.page == "https://mlflow.example.org/#/experiments/4/runs/r"
    assert link.command == ""


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [
        ([0.0, 0.5, 1.0], 40, "▁▅█"),
        ([0.3, 0.3], 40, "▄▄"),
        ([1.0, math.nan, 0.0], 40, "█ ▁"),
        ([math.nan], 40, " "),
        ([], 40, ""),
        (list(range(100)), 3, "▁▅█"),
    ],
)
def test_sparklines(values, width, drawn):
    """The least value is the lowest bar, the greatest the highest; long curves keep their ends."""
    assert sparkline(values, width) == drawn
