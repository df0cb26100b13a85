import json
import os
import pickle
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.schema import TABLES
from sweep import tracking
from sweep.tracking import Tracked, Tracker, TrackingError, track, tracking_uri
from sweep.tracking_apart import WindowApart, parcel
from sweep.tracking_link import find_runs
from sweep.tracking_rows import by_trial, n_trials
from sweep.tracking_similarity import draw, heatmaps, pairs, tables
from sweep.tracking_trial import run_name, shown
from sweep.tracking_uri import reason, way_out, without_secret
from sweep.tracking_view import results_view, study_note
from sweep.tracking_writer import Writer

START = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
ACCURACY = {"en_pud": 0.9, "fr_pud": 0.7, "ja_pud": 0.3}


@dataclass(frozen=True)
class Rows:
    """Four small tables, as `analysis.tables.Tables` will hold them."""

    trials: pa.Table
    scores: pa.Table
    similarity: pa.Table
    curves: pa.Table


def trial(name="aa", **changes):
    spec = {
        "encoder": {"fingerprint": "sha256:ab"},
        "options": {"max_length": 64},
        "precision": "fp32",
    }
    row = dict.fromkeys(TABLES["trials"].names) | {
        "trial_id": name,
        "commit_id": f"{name}-1",
        "kind": "train",
        "status": "done",
        "study": "other",
        "task": "upos",
        "encoder": "models/tiny",
        "encoder_fingerprint": "sha256:ab",
        "source": "en",
        "train": "en_ewt",
        "ablation": "reinit:1-2",
        "seed": 1,
        "cell": "c0",
        "hyper": json.dumps({"learning_rate": 5e-5, "batch_size": 16}),
        "spec": json.dumps(spec),
        "attempt": 1,
        "best_epoch": 2,
        "started": START,
        "finished": START + timedelta(seconds=90),
        "train_s": 60.0,
        "host": "node-1",
        "git_commit": "c5e2096",
        "versions": json.dumps({"torch": "2.13.0"}),
    }
    return row | changes


def score(name, treebank, value, **changes):
    row = {
        "trial_id": name,
        "commit_id": f"{name}-1",
        "split": "test",
        "treebank": treebank,
        "language": treebank[:2],
        "data_key": f"sha256:{treebank}",
        "metric": "accuracy",
        "value": value,
        "n": 100,
    }
    return row | changes


def alike(name, target, layer, value, **changes):
    row = {
        "trial_id": name,
        "commit_id": f"{name}-1",
        "state": "fine-tuned",
        "source": "en",
        "target": target,
        "source_key": "k",
        "target_key": "k",
        "layer": layer,
        "measure": "linear-cka",
        "value": value,
        "n": 1000,
        "null_mean": 0.01,
        "null_95": 0.02,
        "options": "{}",
    }
    return row | changes


def epoch(name, number, loss, value):
    return {
        "trial_id": name,
        "commit_id": f"{name}-1",
        "step": 10 * number,
        "epoch": number,
        "loss": loss,
        "dev_metric": "accuracy",
        "dev_value": value,
        "learning_rate": 1e-5,
    }


def rows_of(trials, scores=(), similarity=(), curves=()):
    given = {"trials": trials, "scores": scores, "similarity": similarity, "curves": curves}
    return Rows(**{k: pa.Table.from_pylist(list(v), TABLES[k]) for k, v in given.items()})


def whole(*names, **changes):
    """Trials with three scores, two epochs and three states against two languages."""
    return rows_of(
        [trial(name, **changes) for name in names],
        [score(name, treebank, value) for name in names for treebank, value in ACCURACY.items()],
        [
            alike(name, target, layer, base + 0.1 * layer)
            for name in names
            for target, base in (("fr", 0.5), ("ja", 0.1))
            for layer in range(3)
        ],
        [
            epoch(name, number, 1 / number, 0.8 + 0.05 * number)
            for name in names
            for number in (1, 2)
        ],
    )


def failed(name="aa", **changes):
    reason_why = {"failure_kind": "user", "failure": "no head for 9 labels\nmore"}
    return trial(name, status="failed", kind="failed", traceback="Traceback: here", best_epoch=None,
                 **reason_why | changes)  # fmt: skip


def one(rows, study="demo"):
    (only,) = [shown(part, study) for part in by_trial(rows)]
    return only


def latest(points):
    return {point.key: point.value for point in sorted(points)}


# What is shown of a trial: pure


def test_scores_and_gap_are_those_of_the_rows():
    """The run shows each language, the targets' mean without the source, and the gap."""
    metrics = latest(one(whole("aa")).metrics)
    assert metrics["accuracy/test/fr"] == 0.7
    assert metrics["accuracy/source"] == 0.9
    assert metrics["accuracy/targets"] == pytest.approx(0.5)
    assert metrics["accuracy/gap"] == pytest.approx(0.4)
    assert metrics["accuracy/dev"] == pytest.approx(0.9)


def test_gap_compares_treebanks_of_one_family():
    """The source's own test set does not stand in for its PUD half."""
    scores = [score("aa", "en_ewt", 1.0), score("aa", "en_pud", 0.8), score("aa", "fr_pud", 0.5)]
    metrics = latest(one(rows_of([trial()], scores)).metrics)
    assert metrics["accuracy/gap"] == pytest.approx(0.3)
    assert (metrics["accuracy/test/en_ewt"], metrics["accuracy/test/en_pud"]) == (1.0, 0.8)


def test_no_gap_without_the_source():
    """Without a score on the source there is a mean of the targets and no gap."""
    metrics = latest(one(rows_of([trial()], [score("aa", "fr_pud", 0.5)])).metrics)
    assert metrics["accuracy/targets"] == 0.5
    assert "accuracy/gap" not in metrics


def test_whole_test_set_wins_over_its_first_sentences():
    """Where a treebank was scored twice, the score over more items is the one that is newest."""
    scores = [
        score("aa", "fr_pud", 0.9, n=10, data_key="a"),
        score("aa", "fr_pud", 0.6, n=500, data_key="b"),
    ]
    for order in (scores, scores[::-1]):
        assert latest(one(rows_of([trial()], order)).metrics)["accuracy/test/fr"] == 0.6


def test_later_targets_make_newer_means():
    """A mean over more targets has a later time, so that MLflow takes it for the last value."""
    few = rows_of([trial()], [score("aa", "en_pud", 0.9), score("aa", "fr_pud", 0.7)])
    (old,) = [p for p in one(few).metrics if p.key == "accuracy/targets"]
    (new,) = [p for p in one(whole("aa")).metrics if p.key == "accuracy/targets"]
    assert new.value < old.value
    assert new.timestamp > old.timestamp


def test_similarity_is_a_curve_over_layers():
    """`cka/mean` has a step per state; the overall mean leaves the embeddings out (D-24)."""
    points = one(whole("aa")).metrics
    curve = [(p.step, p.value) for p in points if p.key == "cka/mean"]
    assert curve == [(0, pytest.approx(0.3)), (1, pytest.approx(0.4)), (2, pytest.approx(0.5))]
    assert latest(points)["cka/overall"] == pytest.approx(0.45)
    assert latest(points)["cka/target/fr"] == pytest.approx(0.65)


def test_undefined_similarity_is_left_out():
    """NaN enters no mean and no metric."""
    similarity = [alike("aa", "fr", 1, 0.5), alike("aa", "ja", 1, float("nan"))]
    metrics = latest(one(rows_of([trial()], (), similarity)).metrics)
    assert metrics["cka/mean"] == 0.5
    assert "cka/target/ja" not in metrics


def test_pairs_without_the_source_are_named_in_full():
    """Where no pair has the source, all pairs count, and a language with itself never does."""
    similarity = [alike("aa", "fr", 0, 0.5, source="de"), alike("aa", "de", 0, 1.0, source="de")]
    found = pairs(rows_of([trial()], (), similarity).similarity, "en")
    assert found == {("linear-cka", "fine-tuned"): {"de-fr": {0: 0.5}}}


def test_dev_curve_has_a_step_per_epoch():
    """Loss and dev score are given per epoch."""
    points = one(whole("aa")).metrics
    assert [(p.step, p.value) for p in points if p.key == "train/loss"] == [(1, 1.0), (2, 0.5)]
    assert [p.step for p in points if p.key == "dev/accuracy"] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "upos en reinit:1-2 seed 1"),
        ({"task": "probe", "encoder": "models/tiny/"}, "pretrained tiny"),
    ],
)
def test_names_are_for_people(changes, name):
    """A run is named after its trial, not after its hash."""
    assert run_name(trial(**changes)) == name


def test_params_and_tags_say_what_the_trial_is():
    """Hyper-parameters are params; what one filters by is a tag; the study is the asked one."""
    run = one(whole("aa"), study="demo")
    assert run.params["learning_rate"] == "5e-05"
    assert run.params["options.max_length"] == "64"
    assert run.params["encoder_fingerprint"] == "sha256:ab"
    wanted = {"task": "upos", "ablation": "reinit:1-2", "seed": "1", "study": "demo"}
    assert wanted.items() <= run.tags.items()
    assert run.tags["xling.trial_id"] == "aa"


def test_failed_trial_shows_its_reason():
    """A failed trial is a FAILED run with its reason as tags and its traceback as a file."""
    run = one(rows_of([failed(commit_id="aa.failed-2-ff")]))
    assert run.status == "FAILED"
    assert run.tags["failure_kind"] == "user"
    assert run.tags["failure"] == "no head for 9 labels\nmore"
    assert run.files["failures/aa.failed-2-ff.txt"] == "Traceback: here"
    assert "no head for 9 labels" in run.tags["mlflow.note.content"]


def test_pruned_trial_is_marked():
    """A pruned trial is KILLED, with the epoch in a tag."""
    run = one(rows_of([trial(status="pruned", pruned_at=1)], (), (), [epoch("aa", 1, 1.0, 0.5)]))
    assert (run.status, run.tags["status"], run.tags["pruned_at"]) == ("KILLED", "pruned", "1")


def test_digest_depends_on_content_alone():
    """Another order of rows changes nothing, another score does."""
    rows = whole("aa", "bb")
    turned = Rows(*(t.take(list(range(t.num_rows))[::-1]) for t in vars(rows).values()))
    digests = [shown(part, "s").digest for part in by_trial(rows)]
    assert [shown(part, "s").digest for part in by_trial(turned)] == digests
    more = rows_of([trial()], [score("aa", "fr_pud", 0.71)])
    assert one(more).digest != one(rows_of([trial()], [score("aa", "fr_pud", 0.7)])).digest


def test_rows_go_to_their_own_trial():
    """Each trial gets its own rows, also one that has none."""
    rows = rows_of(
        [trial("cc"), trial("aa"), trial("bb")],
        [score("bb", "fr_pud", 0.2), score("aa", "fr_pud", 0.1), score("bb", "ja_pud", 0.3)],
    )
    cut = {p.trial["trial_id"]: sorted(s["value"] for s in p.scores) for p in by_trial(rows)}
    assert cut == {"aa": [0.1], "bb": [0.2, 0.3], "cc": []}


def test_trial_that_was_asked_for_more_is_one_run():
    """Of a trial's jobs its training names the run; what failed later is told, the run is done."""
    later = {"kind": "measure", "finished": START + timedelta(days=1)}
    jobs = [
        trial(commit_id="aa+1", host="node-2", **later),
        trial(),
        failed(commit_id="aa+2.failed-1-ff"),
    ]
    rows = rows_of(jobs, [score("aa", "fr_pud", 0.7), score("aa", "ja_pud", 0.3)])
    run = one(rows)
    assert n_trials(rows) == 1
    assert (run.status, run.tags["status"], run.tags["host"]) == ("FINISHED", "done", "node-1")
    assert run.tags["failure"] == "no head for 9 labels\nmore"
    assert run.finished - run.started == 90_000
    assert set(run.files) == {"spec.json", "environment.json", "failures/aa_2.failed-1-ff.txt"}


def test_encoded_columns_are_read_as_plain_ones():
    """Dictionary-encoded tables, as a ledger may hold them, give the same runs."""

    def encoded(table):
        columns = [
            column.dictionary_encode() if pa.types.is_string(column.type) else column
            for column in table.columns
        ]
        return pa.table(columns, table.column_names)

    rows = whole("bb", "aa")
    other = Rows(**{name: encoded(table) for name, table in vars(rows).items()})
    digests = [shown(part, "s").digest for part in by_trial(rows)]
    assert [shown(part, "s").digest for part in by_trial(other)] == digests


def test_table_has_a_line_per_layer():
    """The table shows layers down, the mean first, then languages from most to least alike."""
    table = tables(whole("aa").similarity, "en")["linear-cka.fine-tuned"]
    assert table["columns"] == ["layer", "mean", "fr", "ja"]
    assert table["data"][2] == [2, 0.5, 0.7, 0.3]


def test_heatmap_holds_the_values():
    """Lines are ordered by similarity, columns by layer; a missing value is NaN and is drawn."""
    similarity = [alike("aa", "ja", 0, 0.2), alike("aa", "ja", 1, 0.3), alike("aa", "fr", 1, 0.9)]
    found = heatmaps(rows_of([trial()], (), similarity).similarity, "en", "name")
    heatmap = found["linear-cka.fine-tuned"]
    assert (heatmap.lines, heatmap.layers) == (("fr", "ja"), (0, 1))
    assert heatmap.values[1] == (0.2, 0.3)
    assert heatmap.values[0][0] != heatmap.values[0][0]
    assert draw(heatmap).startswith(b"\x89PNG")


def test_heatmap_colours_follow_the_values():
    """Cells are cividis from 0 (its darkest) to 1 (its brightest), wherever the line stands."""
    import io

    from PIL import Image

    similarity = [alike("aa", "fr", 0, 1.0), alike("aa", "ja", 0, 0.0)]
    (heatmap,) = heatmaps(rows_of([trial()], (), similarity).similarity, "en", "n").values()
    image = Image.open(io.BytesIO(draw(heatmap)))
    colours = {colour for _, colour in image.getcolors(100_000)}
    assert {(253, 231, 55), (0, 34, 77)} <= colours


def test_study_note_means_over_done_trials_only():
    """A line per cell, `ref` first, 1-2 before 11-12; failed and pruned trials enter no mean."""
    runs = [
        (
            {"status": status, "task": "upos", "source": "en", "ablation": ablation},
            {"accuracy/source": 0.9, "accuracy/targets": 0.9 - gap, "accuracy/gap": gap},
        )
        for status, ablation, gap in (
            ("done", "reinit:11-12", 0.1),
            ("done", "reinit:1-2", 0.2),
            ("done", "reinit:1-2", 0.4),
            ("pruned", "reinit:1-2", 0.9),
            ("done", "ref", 0.1),
        )
    ]
    note = study_note("demo", runs)
    assert note.splitlines()[0] == "Study `demo`: 4 done, 1 pruned."
    assert re.findall(r"(ref|reinit:\S+) \| (\d) .*\| ([\d.]+) \|$", note, re.MULTILINE) == [
        ("ref", "1", "0.1000"),
        ("reinit:1-2", "2", "0.3000"),
        ("reinit:11-12", "1", "0.1000"),
    ]


def test_view_lists_the_gap():
    """The saved view sorts by the gap and shows it; its state can be read back."""
    import base64
    import zlib

    view = json.loads(results_view([({}, {"accuracy/gap": 0.1, "cka/overall": 0.5})]))
    state = json.loads(zlib.decompress(base64.b64decode(view["state"].removeprefix("deflate;"))))
    assert state["orderByKey"] == "metrics.`accuracy/gap`"
    assert {"metrics.`accuracy/targets`", "metrics.`cka/overall`"} <= set(state["selectedColumns"])


# Where MLflow's data lie


def test_default_is_a_database_in_the_store(tmp_path, monkeypatch):
    """Without a word from anybody, the database lies in the store."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(str(tmp_path)) == f"sqlite:///{tmp_path}/mlflow.db"


def test_study_wins_over_the_variable(tmp_path, monkeypatch):
    """MLFLOW_TRACKING_URI is honoured, the study's own word before it."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://one:5000")
    assert tracking_uri(str(tmp_path)) == "http://one:5000"
    assert tracking_uri(str(tmp_path), "http://two:5000") == "http://two:5000"


@pytest.mark.parametrize("uri", ["./mlruns", "/data/mlruns", "file:///data/mlruns"])
def test_file_store_is_refused(uri, monkeypatch):
    """A folder is refused with its name, where it came from, and what to write instead."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(TrackingError, match=r"MLFLOW_TRACKING_URI = .*mlruns.*sqlite:///"):
        tracking_uri("results")


def test_passwords_are_not_shown():
    """Neither the URI nor an error's text gives the password away."""
    uri = "postgresql://me:hunter2@db/mlflow"
    assert without_secret(uri) == "postgresql://me:***@db/mlflow"
    assert "hunter2" not in reason(ValueError(f"cannot reach {uri}"), uri)


# The writer, on a window of ours


class FakeWindow:
    """Remembers what it was told; `is_up` and `refuses` are set by the test."""

    def __init__(self):
        self.written, self.calls, self.is_up, self.refuses = [], Counter(), True, set()
        self.finished = self.closed = 0
        self.came = threading.Event()

    def open(self):
        """Answer, or not."""
        if not self.is_up:
            raise OSError("connection refused")

    def close(self):
        """Count how often it was let go."""
        self.closed += 1

    def write(self, rows):
        """Take a trial, or fail as a server does."""
        name = rows.trial["trial_id"]
        self.calls[name] += 1
        self.came.set()
        if not self.is_up or name in self.refuses:
            raise OSError("connection refused")
        self.written.append(name)
        return "created"

    def finish(self):
        """Count how often the study was finished."""
        self.finished += 1

    def is_alive(self):
        """Answer, or not."""
        return self.is_up


def writer_on(window, **changes):
    said = []
    made = Writer("demo", window, warn=said.append, pauses_s=(0.001, 0.002), **changes)
    return made, said


def test_writer_writes_what_it_was_given_and_closes_the_study():
    """All trials arrive in order, and the study is finished once."""
    window = FakeWindow()
    writer, said = writer_on(window)
    for name in ("aa", "bb"):
        writer.submit(rows_of([trial(name)]))
    assert writer.close(10) == Tracked(created=2)
    assert (window.written, window.finished, window.closed) == (["aa", "bb"], 1, 1)
    assert said == []


def test_dead_window_costs_one_warning_and_nothing_else():
    """With nobody answering, submit and close return, everything is left, one warning is given."""
    window = FakeWindow()
    window.is_up = False
    writer, said = writer_on(window)
    for name in ("aa", "bb", "cc"):
        writer.submit(rows_of([trial(name)]))
    assert writer.close(10) == Tracked(left=3)
    assert len(said) == 1
    assert "`sweep track demo`" in said[0]


def test_window_that_comes_back_gets_everything():
    """Rows wait while nobody answers and are written when somebody does."""
    window = FakeWindow()
    window.is_up = False
    writer, said = writer_on(window)
    writer.submit(rows_of([trial("aa")]))
    writer.submit(rows_of([trial("bb")]))
    assert window.came.wait(10)
    window.is_up = True
    assert writer.close(10) == Tracked(created=2)
    assert window.written == ["aa", "bb"]
    assert len(said) <= 1


def test_refused_trial_does_not_hold_the_others():
    """A trial that a living window refuses three times is passed over."""
    window = FakeWindow()
    window.refuses = {"aa"}
    writer, _ = writer_on(window)
    writer.submit(rows_of([trial("aa")]))
    writer.submit(rows_of([trial("bb")]))
    assert writer.close(10) == Tracked(created=1, left=1)
    assert window.calls["aa"] == 3


def test_rows_that_cannot_be_read_do_not_end_the_writer():
    """Odd rows are left, later ones arrive."""
    window = FakeWindow()
    writer, said = writer_on(window)
    writer.submit(rows_of([trial("aa", status="odd")]))
    writer.submit(replace(rows_of([trial("bb")]), scores=pa.table({"no": [1]})))
    writer.submit(rows_of([trial("cc")]))
    assert writer.close(10) == Tracked(created=1, left=2)
    assert len(said) == 1


class Waits(FakeWindow):
    """Does not open before the gate does."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()

    def open(self):
        """Wait."""
        self.gate.wait(10)


def test_room_says_how_many_rows_are_taken():
    """Each trial that waits takes some of it; what is written gives it back."""
    window = Waits()
    writer = Writer("demo", window, warn=[].append, most_waiting=3)
    for name, room in (("aa", 3), ("bb", 2), ("cc", 1)):
        assert writer.room == room
        writer.submit(rows_of([trial(name)]))
    assert writer.room == 0
    window.gate.set()
    assert writer.close(10) == Tracked(created=3)
    assert writer.room == 3


def test_close_does_not_wait_for_a_hanging_window():
    """A window that hangs is left behind when the time is over."""
    window = Waits()
    writer = Writer("demo", window, warn=[].append)
    writer.submit(rows_of([trial()]))
    assert writer.close(0.01) == Tracked(left=1)
    window.gate.set()
    writer._thread.join(10)
    assert window.written == []
    assert window.closed == 1


# The window in a process of its own


@dataclass
class Ledgerlike:
    """A window that writes into a file, and dies or fails when its trial says so."""

    path: Path

    def write(self, rows):
        """Note who wrote it."""
        name = rows.trial["trial_id"]
        if name == "refused":
            raise KeyError("no such thing")
        if name == "deadly" and "deadly" not in self.path.read_text():
            self.path.write_text(self.path.read_text() + f"deadly {os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        self.path.write_text(self.path.read_text() + f"{name} {os.getpid()}\n")
        return "created"

    def finish(self):
        """Note it."""
        self.path.write_text(self.path.read_text() + f"finished {os.getpid()}\n")

    def is_alive(self):
        """Always."""
        return True


def ledgerlike(path):
    """What is opened in the other process; the second attempt goes well."""
    if not path.exists():
        path.write_text("")
        raise ValueError("not yet")
    return Ledgerlike(path)


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """A window of a module that the other process can load, and what it has written."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2]), *sys.path])
    path = tmp_path / "written"
    window = WindowApart(ledgerlike, path)
    yield window, lambda: [line.split() for line in path.read_text().splitlines()]
    window.close()


def test_window_apart_writes_in_another_process(apart):
    """One process opens, writes and finishes; it is not this one, and it ends."""
    window, written = apart
    with pytest.raises(OSError, match="not yet"):
        window.open()
    writer = Writer("demo", window, warn=[].append, pauses_s=(0.001, 0.002))
    for name in ("aa", "bb"):
        writer.submit(rows_of([trial(name)]))
    assert writer.close(30) == Tracked(created=2)
    names, processes = zip(*written(), strict=True)
    assert names == ("aa", "bb", "finished")
    assert len({*processes, str(os.getpid())}) == 2
    assert window._apart.is_gone


def test_killed_process_is_followed_by_another(apart):
    """Kill -9 in the middle of a trial: the next process writes it again, and all that follow."""
    window, written = apart
    with pytest.raises(OSError, match="not yet"):
        window.open()
    said = []
    writer = Writer("demo", window, warn=said.append, pauses_s=(0.001, 0.002))
    for name in ("aa", "deadly", "bb"):
        writer.submit(rows_of([trial(name)]))
    assert writer.close(30) == Tracked(created=3)
    assert [name for name, _ in written()] == ["aa", "deadly", "deadly", "bb", "finished"]
    assert len({process for _, process in written()}) == 2
    assert len(said) == 1


def test_refusal_is_told_in_words(apart):
    """The other side's error needs none of its classes here."""
    window, _ = apart
    said = []
    writer = Writer("demo", window, warn=said.append, pauses_s=(0.001, 0.002))
    writer.submit(rows_of([trial("refused")]))
    assert writer.close(30) == Tracked(left=1)
    assert "not yet" in said[0]
    with pytest.raises(OSError, match="no such thing"):
        window.write(next(by_trial(rows_of([trial("refused")]))))


def test_what_travels_is_of_one_trial_only():
    """Rows of other trials in the same table stay here: they would be sent once for each."""
    many = [alike("aa", "fr", layer, 0.5) for layer in range(13)]
    many += [alike(f"b{i}", "fr", 0, 0.5) for i in range(50_000)]
    names = ["aa", *(f"b{i}" for i in range(50_000))]
    first = next(by_trial(rows_of([trial(name) for name in names], (), many)))
    assert len(pickle.dumps(first)) > 1e6
    assert len(pickle.dumps(parcel(first))) < 2e4
    assert parcel(first) == first


# Real MLflow on SQLite


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One database for the module: making its tables takes a second."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def study(request, monkeypatch):
    """A study of its own for every test, in the store's own database."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return request.node.name


def client_of(where):
    from mlflow import MlflowClient

    uri = where if "://" in str(where) else f"sqlite:///{where}/mlflow.db"
    return MlflowClient(tracking_uri=uri)


def runs_of(client, study):
    """Trial id -> run, for every run of the study but its parent; fails on a double."""
    experiment = client.get_experiment_by_name(study)
    runs = [
        run
        for run in client.search_runs([experiment.experiment_id], max_results=1000)
        if "xling.trial_id" in run.data.tags
    ]
    counts = Counter(run.data.tags["xling.trial_id"] for run in runs)
    assert set(counts.values()) <= {1}
    return {run.data.tags["xling.trial_id"]: run for run in runs}


def parents_of(client, study):
    experiment = client.get_experiment_by_name(study)
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    return [run for run in runs if "xling.study" in run.data.tags]


def everything(client, run):
    """All that MLflow holds of a run, histories and files included, but for what it made up."""
    run_id = run.info.run_id
    history = {
        key: sorted((m.step, m.timestamp, m.value) for m in client.get_metric_history(run_id, key))
        for key in run.data.metrics
    }
    tags = {key: value for key, value in run.data.tags.items() if key != "mlflow.parentRunId"}
    return history, run.data.params, tags, run.info.status, files_of(client, run_id)


def files_of(client, run_id, folder=None):
    found = set()
    for item in client.list_artifacts(run_id, folder):
        found |= files_of(client, run_id, item.path) if item.is_dir else {item.path}
    return found


def test_tables_become_runs(store, study):
    """Every trial is a finished run under the study's run, with params, metrics and files."""
    assert track(study, whole("aa", "bb"), store=str(store)) == Tracked(created=2)
    client = client_of(store)
    run = runs_of(client, study)["aa"]
    (parent,) = parents_of(client, study)
    assert parent.info.run_name == study
    assert parent.info.status == "FINISHED"
    assert run.info.run_name == "upos en reinit:1-2 seed 1"
    assert run.info.status == "FINISHED"
    assert run.info.end_time - run.info.start_time == 90_000
    assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert run.data.metrics["accuracy/gap"] == pytest.approx(0.4)
    assert [m.step for m in client.get_metric_history(run.info.run_id, "cka/mean")] == [0, 1, 2]
    assert files_of(client, run.info.run_id) == {
        "spec.json",
        "environment.json",
        "similarity/rows.parquet",
        "similarity/linear-cka.fine-tuned.json",
        "similarity/linear-cka.fine-tuned.png",
    }
    assert run.info.artifact_uri.startswith((store / "mlflow-artifacts").as_uri())


@pytest.mark.slow
def test_a_database_that_was_left_half_made_says_how_to_go_on(tmp_path):
    """MLflow itself cannot go on with what a full disk left."""
    file = tmp_path / "mlflow.db"
    half = sqlite3.connect(file)
    half.execute("create table trace_info (request_id varchar)")
    half.close()
    with pytest.raises(TrackingError, match=r"0 of 2 trials .*: move .*mlflow\.db away\."):
        track("half", whole("aa", "bb"), store=str(tmp_path))


@pytest.mark.parametrize(
    ("uri", "text", "told"),
    [
        ("http://h:5000", "connection refused", "Is the server up?"),
        ("sqlite:////d/m.db", "database or disk is full", "Make room where /d/m.db lies."),
        ("sqlite:////d/m.db", "attempt to write a readonly database", "Can /d/m.db be written?"),
    ],
)
def test_what_mends_mlflow_is_said(uri, text, told):
    """By what its error says."""
    assert way_out(uri, ValueError(text)) == told


def test_links_are_found_in_mlflows_own_database(store, study):
    """Read as a file or asked through MLflow, the runs of a study are those that were made."""
    track(study, whole("aa", "bb"), store=str(store))
    uri = f"sqlite:///{store}/mlflow.db"
    runs = runs_of(client_of(store), study)
    made = {name: (run.info.run_id, run.info.experiment_id) for name, run in runs.items()}
    found = find_runs(study, uri)
    assert {name: (link.run_id, link.experiment) for name, link in found.items()} == made
    assert tracking.runs_of(study, uri) == made


def test_parquet_artifact_holds_the_rows(store, study):
    """The table that is attached is the trial's rows, unchanged."""
    rows = whole("aa")
    track(study, rows, store=str(store))
    client = client_of(store)
    run_id = runs_of(client, study)["aa"].info.run_id
    path = client.download_artifacts(run_id, "similarity/rows.parquet")
    assert pa.parquet.read_table(path).equals(rows.similarity)


def test_second_track_changes_nothing(store, study):
    """Tracking again finds everything right: no run, no point, no file more."""
    rows = whole("aa", "bb")
    track(study, rows, store=str(store))
    client = client_of(store)
    before = {name: everything(client, run) for name, run in runs_of(client, study).items()}
    parent = everything(client, *parents_of(client, study))
    assert track(study, rows, store=str(store)) == Tracked(unchanged=2)
    assert {n: everything(client, r) for n, r in runs_of(client, study).items()} == before
    assert everything(client, *parents_of(client, study)) == parent


@pytest.mark.parametrize("call", ["log_batch", "log_artifacts", "set_terminated"])
def test_writer_killed_in_between_is_completed(store, study, call, monkeypatch):
    """Wherever a writer stops, the next one completes the same run, nothing doubled."""
    from mlflow import MlflowClient
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    def killed(*_args, **_settings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        owner = LocalArtifactRepository if call == "log_artifacts" else MlflowClient
        patch.setattr(owner, call, killed)
        with pytest.raises(KeyboardInterrupt):
            track(study, whole("aa"), store=str(store))
    client = client_of(store)
    (left,) = runs_of(client, study).values()
    assert left.info.status == "RUNNING"
    assert track(study, whole("aa"), store=str(store)) == Tracked(completed=1)
    (run,) = runs_of(client, study).values()
    assert run.info.run_id == left.info.run_id
    track(f"{study} again", whole("aa"), store=str(store))
    (clean,) = runs_of(client, f"{study} again").values()
    mended, fresh = everything(client, run), everything(client, clean)
    assert mended[:2] == fresh[:2]
    assert mended[3:] == fresh[3:]


class WindowHere:
    """A window of this process, which a test can break."""

    def __init__(self, open_window, *arguments):
        self.open_window, self.arguments = open_window, arguments

    def open(self):
        """Open it, and do as it does."""
        window = self.open_window(*self.arguments)
        self.write, self.finish, self.is_alive = window.write, window.finish, window.is_alive

    def close(self):
        """Nothing to close."""


def test_lost_answer_makes_no_second_run(store, study, monkeypatch):
    """A run whose creation was done but not confirmed is found again by its tag."""
    from mlflow import MlflowClient

    create, lost = MlflowClient.create_run, []

    def creates_but_fails(self, *args, **settings):
        run = create(self, *args, **settings)
        if settings["run_name"] != study and not lost:
            lost.append(run.info.run_id)
            raise OSError("connection reset")
        return run

    monkeypatch.setattr(MlflowClient, "create_run", creates_but_fails)
    monkeypatch.setattr(tracking, "WindowApart", WindowHere)
    tracker = Tracker(str(store), study, warn=[].append, pauses_s=(0.001, 0.002))
    tracker.submit(whole("aa"))
    assert tracker.close(30) == Tracked(completed=1)
    assert [r.info.run_id for r in runs_of(client_of(store), study).values()] == lost


def test_failed_then_done_is_one_run(store, study):
    """A trial that failed and then went well is one FINISHED run without a reason of failure."""
    track(study, rows_of([failed(commit_id="aa.failed-1-ff")]), store=str(store))
    client = client_of(store)
    run = runs_of(client, study)["aa"]
    assert run.info.status == "FAILED"
    assert run.data.tags["failure_kind"] == "user"
    assert track(study, whole("aa", attempt=2), store=str(store)) == Tracked(completed=1)
    again = runs_of(client, study)["aa"]
    assert (again.info.run_id, again.info.status) == (run.info.run_id, "FINISHED")
    assert not {"failure", "failure_kind"} & set(again.data.tags)
    assert "failures/aa.failed-1-ff.txt" in files_of(client, run.info.run_id)


def test_new_target_goes_into_the_same_run(store, study):
    """A target measured later adds its score, and the mean is the new one."""
    few = rows_of([trial()], [score("aa", "en_pud", 0.9), score("aa", "fr_pud", 0.7)])
    track(study, few, store=str(store))
    assert track(study, whole("aa"), store=str(store)) == Tracked(completed=1)
    metrics = runs_of(client_of(store), study)["aa"].data.metrics
    assert metrics["accuracy/test/ja"] == 0.3
    assert metrics["accuracy/targets"] == pytest.approx(0.5)


def test_run_that_came_twice_goes_to_the_trash(store, study):
    """Of two runs of a trial one stays."""
    track(study, whole("aa"), store=str(store))
    client = client_of(store)
    experiment = client.get_experiment_by_name(study).experiment_id
    client.create_run(experiment, tags={"xling.trial_id": "aa"})
    track(study, whole("aa"), store=str(store))
    assert len(runs_of(client, study)) == 1


def test_run_nobody_knows_is_closed(store, study):
    """A run left open, of which the tables know nothing, is closed as KILLED."""
    track(study, whole("aa"), store=str(store))
    client = client_of(store)
    experiment = client.get_experiment_by_name(study).experiment_id
    client.create_run(experiment, tags={"xling.trial_id": "zz"})
    track(study, whole("aa"), store=str(store))
    assert runs_of(client, study)["zz"].info.status == "KILLED"


def test_deleted_experiment_comes_back(store, study):
    """A study moved to the trash in the UI is shown again, not an error."""
    track(study, whole("aa"), store=str(store))
    client = client_of(store)
    client.delete_experiment(client.get_experiment_by_name(study).experiment_id)
    track(study, whole("aa"), store=str(store))
    assert client.get_experiment_by_name(study).lifecycle_stage == "active"
    assert set(runs_of(client, study)) == {"aa"}


def test_live_writer_says_what_track_says(store, study):
    """Rows submitted one by one give the same runs as the tables at the end."""
    tracker = Tracker(str(store), study)
    for name in ("aa", "bb"):
        tracker.submit(whole(name))
    assert tracker.close(30) == Tracked(created=2)
    client = client_of(store)
    (parent,) = parents_of(client, study)
    assert parent.info.status == "FINISHED"
    assert track(study, whole("aa", "bb"), store=str(store)) == Tracked(unchanged=2)
    assert len(parents_of(client, study)) == 1


def test_many_points_fit(store, study):
    """More points than one request takes arrive all the same."""
    curves = [epoch("aa", number, 1.0, 0.5) for number in range(1, 402)]
    track(study, rows_of([trial()], (), (), curves), store=str(store))
    client = client_of(store)
    run_id = runs_of(client, study)["aa"].info.run_id
    assert len(client.get_metric_history(run_id, "train/loss")) == 401


def test_database_uses_a_write_ahead_log(store, study):
    """Readers of the UI do not hold up the writer."""
    track(study, whole("aa"), store=str(store))
    database = sqlite3.connect(store / "mlflow.db")
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


@pytest.mark.slow
def test_nothing_is_printed_and_nothing_is_left_in_the_folder(tmp_path):
    """A fresh process tracks without a word, without telemetry, and writes in the store only."""
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('t', {__file__!r})\n"
        "t = importlib.util.module_from_spec(spec); sys.modules['t'] = t\n"
        "spec.loader.exec_module(t)\n"
        "tracker = t.Tracker('store', 'quiet'); tracker.submit(t.whole('aa'))\n"
        "assert tracker.close(60) == t.Tracked(created=1)\n"
        "from mlflow.telemetry import get_telemetry_client\n"
        "assert get_telemetry_client() is None\n"
    )
    hidden = {"PYTEST_CURRENT_TEST", "CI", "GITHUB_ACTIONS", "MLFLOW_TRACKING_URI"}
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


# A real server


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def serve(tmp_path, port):
    """Starts `mlflow server` on loopback; every start serves the same database."""
    alive = []

    def start():
        command = [
            sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
            "--workers", "1", "--backend-store-uri", f"sqlite:///{tmp_path}/server.db",
            "--artifacts-destination", str(tmp_path / "artifacts"),
        ]  # fmt: skip
        quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        log = (tmp_path / "server.log").open("a")
        server = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | quiet, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        log.close()
        alive.append(server)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            except OSError:
                assert server.poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.1)  # polls another process; nothing is asserted on the time
            else:
                return server
        raise AssertionError("mlflow server did not start")

    def stop(server):
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        alive.remove(server)

    yield start, stop
    for server in alive[:]:
        stop(server)


@pytest.mark.slow
def test_server_killed_in_the_middle_is_completed_later(serve, port, tmp_path, monkeypatch):
    """A server that dies costs one warning; `track` completes, and a second one finds all right."""
    start, stop = serve
    uri = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    names = [f"t{number}" for number in range(6)]
    server, said = start(), []
    tracker = Tracker(str(tmp_path), "demo", warn=said.append, pauses_s=(0.05, 0.1))
    for name in names[:3]:
        tracker.submit(whole(name))
    for _ in range(600):
        if tracker._counts["created"] >= 2:
            break
        time.sleep(0.1)
    stop(server)
    for name in names[3:]:
        tracker.submit(whole(name))
    seen = tracker.close(30)
    assert seen.created >= 2
    assert seen.left >= 3
    assert len(said) == 1
    with pytest.raises(TrackingError, match=r"`sweep track demo` again"):
        track("demo", whole(*names), store=str(tmp_path))
    start()
    found = track("demo", whole(*names), store=str(tmp_path))
    assert found.created + found.completed + found.unchanged == 6
    assert found.created + found.completed >= 3
    assert track("demo", whole(*names), store=str(tmp_path)) == Tracked(unchanged=6)
    client = client_of(uri)
    runs = runs_of(client, "demo")
    assert sorted(runs) == names
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    for run in runs.values():
        assert "similarity/linear-cka.fine-tuned.png" in files_of(client, run.info.run_id)
    assert len(parents_of(client, "demo")) == 1
