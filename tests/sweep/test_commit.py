import logging
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import store_samples as make

from analysis.layout import commit_ids, read_commits
from analysis.tables import read_tables
from sweep.commit import code_version, commit_path
from sweep.rows import spec_from_json, spec_to_json
from sweep.storage import StorageError, Store

pytestmark = pytest.mark.usefixtures("quick_disk")


def columns(table, *names):
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_spec_survives_json():
    """A spec, and that of a probe without data, come back equal from their JSON."""
    for spec in (make.spec(3), make.probe()):
        assert spec_from_json(spec_to_json(spec)) == spec


def test_spec_of_an_older_version_gets_defaults():
    """A stored spec that lacks a field added later reads with that field's default."""
    text = spec_to_json(make.spec()).replace('"precision": "fp32", ', "")
    assert "precision" not in text
    assert spec_from_json(text) == make.spec()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a trial spec in JSON"),
        ("[]", "no JSON object"),
        ("{}", "absent fields"),
        (spec_to_json(make.spec()).replace('"seed"', '"sead"'), "sead"),
    ],
)
def test_json_that_is_no_spec_is_refused(text, message):
    """Anything else is a ValueError that says what is wrong."""
    with pytest.raises(ValueError, match=message):
        spec_from_json(text)


def test_result_comes_back_in_four_tables(tmp_path):
    """All rows of a committed result come back, under its trial and commit id."""
    asked = make.targets("de_pud", "fr_pud")
    asked = replace(asked, similarity=make.similarity("en_pud", "de_pud").similarity)
    job = make.job(tmp_path, asked)
    expected = make.result(asked)
    assert make.commit(job) == job.trial_id
    tables = read_tables(tmp_path)
    (trial,) = tables.trials.to_pylist()
    assert trial["status"] == "done"
    assert trial["kind"] == "train"
    assert (trial["started"], trial["finished"]) == (make.NOON, make.ONE)
    assert spec_from_json(trial["spec"]) == job.spec
    assert {name: trial[name] for name in asdict(make.FACTS)} == asdict(make.FACTS)
    owners = {"trial_id": job.trial_id, "commit_id": job.trial_id}
    assert tables.scores.to_pylist() == [owners | asdict(row) for row in expected.scores]
    assert tables.similarity.to_pylist() == [owners | asdict(row) for row in expected.similarity]
    assert tables.curves.to_pylist() == [owners | asdict(row) for row in expected.curve]


def test_commit_is_one_file_named_after_the_job(tmp_path):
    """A commit adds exactly one file to the store, at commits/<first two>/<job>.parquet."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.commit(job)
    files = [file.path for file in Store(tmp_path).files()]
    assert files == [f"commits/{job.job_id[:2]}/{job.job_id}.parquet"]


def test_first_commit_wins(tmp_path):
    """A second result of one job leaves the first in place, byte for byte."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.commit(job, 0.5)
    before = Store(tmp_path).read(commit_path(job.job_id))
    assert make.commit(job, 0.75) == job.job_id
    assert Store(tmp_path).read(commit_path(job.job_id)) == before


def test_torn_commit_makes_way_and_is_kept(tmp_path, caplog):
    """A result takes the place of a torn file of its name, which is moved aside, not deleted."""
    job = make.job(tmp_path, make.targets("de_pud"))
    store = Store(tmp_path)
    store.publish(commit_path(job.job_id), b"PAR1 half a file")
    with caplog.at_level(logging.WARNING):
        make.commit(job, 0.75)
    assert "torn" in caplog.text
    assert set(read_tables(tmp_path).scores.column("value").to_pylist()) == {0.75}
    (aside,) = store.files("torn")
    assert store.read(aside.path) == b"PAR1 half a file"


def test_measure_job_commits_only_what_was_asked(tmp_path):
    """A job that measures more adds its own scores, and no second dev score or curve."""
    first = make.job(tmp_path, make.targets("de_pud"))
    second = make.more(first, make.targets("ru_pud"))
    make.commit(second)
    tables = read_tables(tmp_path)
    assert columns(tables.trials, "trial_id", "commit_id", "kind") == [
        (first.trial_id, second.job_id, "measure")
    ]
    assert tables.scores.column("treebank").to_pylist() == ["ru_pud"]
    assert len(tables.curves) == 0


def test_pruned_trial_leaves_the_name_free_for_a_whole_result(tmp_path):
    """A trial that was pruned and later trained in full counts as trained in full."""
    job = make.job(tmp_path, make.targets("de_pud"))
    assert make.commit(job, scores=(), pruned_at=1) == f"{job.job_id}.pruned-1"
    assert read_tables(tmp_path).trials.column("status").to_pylist() == ["pruned"]
    make.commit(job, finished=make.TWO)
    tables = read_tables(tmp_path)
    assert tables.trials.column("status").to_pylist() == ["done"]
    assert tables.curves.column("epoch").to_pylist() == [1, 2]


def test_failures_of_one_attempt_number_do_not_hide_each_other(tmp_path):
    """Two runs that both fail at attempt 1 leave two files, of which the later one is shown."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.fail(job, message="first", at=make.ONE)
    make.fail(job, message="second", at=make.TWO)
    assert len(Store(tmp_path).files("commits")) == 2
    (row,) = read_tables(tmp_path).trials.to_pylist()
    assert (row["failure"], row["failure_kind"], row["traceback"]) == ("second", "unknown", "tb")


def test_job_id_never_becomes_a_path(tmp_path):
    """A job id that would leave the folder of commits is refused, and nothing is written."""
    job = make.job(tmp_path, make.targets("de_pud"), job_id="../../etc/x", trial_id="../../etc/x")
    with pytest.raises(ValueError, match="cannot name a file"):
        make.commit(job)
    assert Store(tmp_path).files() == []


def test_store_that_cannot_be_written_shows_no_commit(tmp_path):
    """When the store refuses the file, the error says so and no commit is visible."""
    (tmp_path / "commits").write_text("a file in place of the folder")
    with pytest.raises(StorageError, match="commits"):
        make.commit(make.job(tmp_path, make.targets("de_pud")))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["commits"]


def test_code_version_is_a_commit_or_a_release():
    """Rows name the code by git commit in a checkout, else by package version."""
    version = code_version()
    is_commit = len(version.rstrip("+")) == 40 and int(version.rstrip("+"), 16) > 0
    assert is_commit if Path(__file__).parents[2].joinpath(".git").exists() else version


def test_truncation_at_any_length_is_noticed(tmp_path, caplog):
    """A commit cut at any tenth of its length, or zeroed there, is named and not read."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.commit(job)
    store, path = Store(tmp_path), commit_path(job.job_id)
    whole = store.read(path)
    for tenth in range(10):
        start, end = len(whole) * tenth // 10, len(whole) * (tenth + 1) // 10
        for bad in (whole[:start], whole[:start] + bytes(end - start) + whole[end:]):
            store.publish(path, bad)
            caplog.clear()
            loose = read_commits(store, commit_ids(store.files("commits")))
            assert not loose.ids
            assert [file.path for file in loose.bad] == [path]
            assert path in caplog.text
            assert store.read(path) == bad


COMMIT_ON = """
import sys
sys.path.insert(0, sys.argv[2])
import store_samples as make
print("ready", flush=True)
for seed in range(10**6):
    make.commit(make.job(sys.argv[1], make.targets("de_pud"), make.spec(seed % 40)))
"""


@pytest.mark.slow
def test_killed_committer_leaves_whole_commits_only(tmp_path):
    """After kill -9 of a committing process at any moment, every visible commit is whole."""
    store = Store(tmp_path)
    for turn in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMIT_ON, store.where, str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()
        while len(store.files("commits")) < 5 * turn + 1:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        files = commit_ids(store.files("commits"))
        loose = read_commits(store, files)
        assert loose.ids == set(files)
        assert len(loose.tables["scores"]) == 2 * len(files)


@pytest.mark.slow
def test_commits_on_an_object_store(bucket):
    """On S3 the first commit wins too, and reads back as it does locally."""
    job = make.job(bucket, make.targets("de_pud"))
    make.commit(job, 0.5)
    make.commit(job, 0.75)
    tables = read_tables(bucket)
    assert set(tables.scores.column("value").to_pylist()) == {0.5}
