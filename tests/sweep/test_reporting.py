"""From a study and its store to the analysis: planned rows, folder, text."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.folder import Folder, FolderError
from analysis.schema import TABLES, TRIALS
from analysis.tables import Tables
from sweep.cli import _code_of
from sweep.grid import PlannedTrial
from sweep.identity import cell_id, trial_id
from sweep.ledger import Ledger
from sweep.opened import Opened, store_of
from sweep.reporting import (
    OF_A_SPEC,
    planned_rows,
    report_folder,
    report_study,
    with_defaults,
)
from sweep.rows import result_row
from sweep.study import StudyError, build_study
from sweep.studyfile import study_text
from trainables.spec import (
    DataRef,
    EncoderRef,
    Facts,
    HyperParameters,
    Job,
    Request,
    TrialResult,
    TrialSpec,
    Workspace,
)

FILE = DataRef(code="en_ewt", language="en", split="x", location="/f", fingerprint="sha256:f")
SPEC = TrialSpec(
    task="upos",
    encoder=EncoderRef(name="e", location="/e", fingerprint="sha256:e", n_layers=2),
    source="en",
    train=FILE,
    dev=FILE,
    ablation="reinit:1",
    hyper=HyperParameters(learning_rate=1e-4, batch_size=8, epochs=2),
    seed=3,
)
TRIAL = PlannedTrial(
    trial_id=trial_id(SPEC), cell_id=cell_id(SPEC), spec=SPEC, request=Request(targets=(FILE,))
)
STUDY = build_study(
    {
        "name": "tiny",
        "encoder": {"model": "e"},
        "data": {"sources": {"en": "en_ewt"}},
        "grid": {"task": "upos", "source": "en"},
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2},
        "seeds": {"report": [3]},
        "evaluate": {"targets": ["en", "fr_gsd"], "naming": "{lang}_pud"},
    }
)


BLANK = {"commit_id": "c", "kind": "train", "status": "done", "study": "tiny", "attempt": 1}


def opened_in(store):
    return Opened(study=STUDY, store=store, trials=(TRIAL,), ledger=Ledger(store))


def test_planned_rows_are_those_that_a_finished_trial_will_have():
    """What is known of a trial before it runs is, column by column, what its row says after."""
    job = Job(
        job_id=TRIAL.trial_id,
        trial_id=TRIAL.trial_id,
        study="tiny",
        spec=SPEC,
        request=TRIAL.request,
        workspace=Workspace(checkpoints="/c", cache="/d"),
        store="/s",
    )
    nothing = dict.fromkeys(Facts.__dataclass_fields__, 0) | {"device": "cpu"}
    result = TrialResult(best_epoch=1, scores=(), similarity=(), curve=(), facts=Facts(**nothing))
    now = datetime.now(UTC)
    after = result_row(job, result, now, now, kept=False)
    (before,) = planned_rows([TRIAL]).to_pylist()
    assert before == {name: after[name] for name in OF_A_SPEC}
    assert all(planned_rows([]).schema.field(name) == TRIALS.field(name) for name in OF_A_SPEC)


def test_an_option_added_later_makes_no_new_setting():
    """A spec stored before an option existed reads as one that has its default."""
    row = planned_rows([TRIAL]).to_pylist()[0]
    older = json.loads(row["spec"])
    del older["options"]["head_dropout"]
    trials = pa.Table.from_pylist([{**BLANK, **row, "spec": json.dumps(older)}], schema=TRIALS)
    empty = {name: TABLES[name].empty_table() for name in ("scores", "similarity", "curves")}
    filled = with_defaults(Tables(trials=trials, **empty))
    assert filled.trials.column("spec").to_pylist() == [row["spec"]]


def test_a_probe_is_planned_without_data():
    """A trial that trains nothing has an empty training treebank, as in its own row."""
    probe = {field: getattr(TRIAL, field) for field in ("trial_id", "cell_id", "request")}
    spec = TrialSpec(**{name: getattr(SPEC, name) for name in asdict(SPEC)} | {"train": None})
    (row,) = planned_rows([PlannedTrial(spec=spec, **probe)]).to_pylist()
    assert row["train"] == ""


def test_a_store_without_results_has_no_report(tmp_path):
    """Before anything has run, report says so and names the store."""
    with pytest.raises(StudyError, match="no trial has ended yet in"):
        report_study(opened_in(str(tmp_path)), None, "tiny", [])
    assert list(tmp_path.iterdir()) == []


def test_the_report_lies_in_the_store_unless_named(tmp_path, monkeypatch):
    """The report's folder is the study's own, or the one of the command line."""
    opened = opened_in(str(tmp_path))
    assert report_folder(opened, None) == tmp_path / "studies" / "tiny" / "report"
    monkeypatch.chdir(tmp_path)
    assert report_folder(opened, "here") == tmp_path / "here"


def test_a_store_elsewhere_needs_a_folder_for_the_report(tmp_path):
    """A report of a store that is a bucket is written where the user says."""
    opened = Opened(study=STUDY, store="s3://b/x", trials=(), ledger=Ledger(str(tmp_path)))
    with pytest.raises(StudyError, match="--out FOLDER"):
        report_folder(opened, None)


def test_stores_are_absolute_paths_or_uris(tmp_path, monkeypatch):
    """A relative store starts from the working directory; a URI stays as it is."""
    monkeypatch.chdir(tmp_path)
    assert store_of(STUDY) == str(tmp_path / "results")
    assert store_of(STUDY, "other") == str(tmp_path / "other")
    assert store_of(STUDY, "gs://b/x") == "gs://b/x"


def test_the_page_shows_the_file_and_what_was_overridden():
    """The study's text ends with the overrides, as comments."""
    text = study_text("first-align-small", ["seeds.report=[1, 2]"])
    assert text.startswith("# Question:")
    assert text.endswith("\n# --set seeds.report=[1, 2]\n")


def test_a_full_disk_is_said_with_the_file_and_the_way_out(tmp_path):
    """No traceback of ours: `sweep report` prints what `FolderError` says."""
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"/dev/full: .*No space left.*--out"):
        Folder(Path("/dev")).write("full", "page")
    with pytest.raises(FolderError, match=r"file/tables/main\.md: cannot be written"):
        Folder(tmp_path / "file").write("tables/main.md", "table")
    assert _code_of(FolderError("x")) == 1
