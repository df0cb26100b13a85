"""Subword overlap in a store: counted once, extended, and found by the report."""

import io
import json
from dataclasses import asdict, replace
from functools import partial

import pytest
import store_samples as make

from analysis.shared import data_key
from sweep import overlap
from sweep.grid import PlannedTrial
from sweep.overlap import count_overlap, read_overlap
from sweep.storage import Store
from trainables.data import pieces
from trainables.data.pieces import PieceCounts
from trainables.data.sentence import DataError
from trainables.spec import Request

pytestmark = pytest.mark.usefixtures("quick_disk")

PIECES = {
    "en_ewt": ([1, 2, 3], [5, 5, 5]),
    "de_pud": ([1, 2, 8, 9], [6, 2, 1, 1]),
    "en_pud": ([1, 3], [2, 2]),
    "fr_pud": ([7], [4]),
}


@pytest.fixture
def counted(monkeypatch):
    """Pieces made up, and the list of files that were counted."""
    seen = []

    def piece_counts(ref, _encoder, _cache):
        seen.append(ref.code)
        ids, counts = PIECES[ref.code]
        return PieceCounts(make_array(ids), make_array(counts))

    monkeypatch.setattr(pieces, "piece_counts", piece_counts)
    return seen


def make_array(values):
    import numpy as np

    return np.array(values)


def planned(*codes, seed=1, spec=None):
    spec = spec or make.spec(seed)
    return PlannedTrial(trial_id="t", cell_id="c", spec=spec, request=make.targets(*codes))


def test_overlap_is_counted_once_a_pair_of_files(tmp_path, counted):
    """Two seeds share one count; a target added later adds one; a rerun counts nothing."""
    store, said = Store(tmp_path), []
    count = partial(count_overlap, home=store, cache="c", say=said.append)
    assert count([planned("de_pud"), planned("de_pud", seed=2)]) == 1
    assert counted == ["en_ewt", "de_pud"]
    assert count([planned("de_pud", "fr_pud")]) == 1
    assert said == ["Counting the subwords that en_ewt shares with 1 test set."] * 2
    assert count([planned("de_pud", "fr_pud")]) == 0
    assert len(said) == 2
    assert counted == ["en_ewt", "de_pud", "en_ewt", "fr_pud"]
    rows = {row["data_key"]: row for row in read_overlap(str(tmp_path)).to_pylist()}
    german, french = rows[make.ref("de_pud").key], rows[make.ref("fr_pud").key]
    assert (german["types"], german["tokens"]) == (2 / 4, 8 / 10)
    assert (german["n_types"], german["n_tokens"]) == (4, 10)
    assert (french["types"], french["tokens"]) == (0.0, 0.0)
    assert german["encoder_fingerprint"] == make.ENCODER.fingerprint


def test_a_probe_has_nothing_to_share(tmp_path, counted):
    """What trains nothing is passed over."""
    probe = replace(planned(), spec=make.probe(), request=Request())
    assert count_overlap([probe], Store(tmp_path), "c") == 0
    assert counted == []
    assert len(read_overlap(str(tmp_path))) == 0


@pytest.mark.parametrize(("limit", "skip"), [(None, 0), (300, 0), (None, 7), (300, 7)])
def test_the_report_names_a_training_set_as_the_store_does(limit, skip):
    """The key that the analysis reads off a stored spec is the data's own."""
    ref = replace(make.ref("en_ewt", "train"), limit=limit, skip=skip)
    assert data_key(json.loads(json.dumps(asdict(ref)))) == ref.key


def test_counting_is_asked_for_by_the_study():
    """The key `evaluate.overlap` is off unless a study says so."""
    assert overlap.FOLDER == "overlap"
    from run_samples import study_of

    study = study_of("/s", [1])
    assert study.evaluate.overlap is False
    wanted = {"targets": ["en"], "naming": "{lang}_pud", "overlap": True}
    assert study_of("/s", [1], evaluate=wanted).evaluate.overlap is True


def run(store, **changes):
    """Run a made-up study that asks for overlap, in this process; what was done and said."""
    import run_samples as made
    from rich.console import Console

    from sweep.run import run_study

    wanted = {"targets": ["en", "fr"], "naming": "{lang}_pud", "overlap": True}
    study = made.study_of(store, [1], evaluate=wanted, **changes)
    console = Console(file=io.StringIO(), width=300)
    summary = run_study(study, workers=1, console=console, worker=made.WORKER)
    return summary, console.file.getvalue()


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """Find made-up files instead of real ones; caches lie in the test's own folder."""
    import run_samples as made

    monkeypatch.setattr("sweep.opened.resolve", made.resolve)
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    return tmp_path / "results"


def overlap_files(store):
    """Every file of counts: path -> when it was last written, and its bytes."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in (store / overlap.FOLDER).iterdir()
    }


def test_a_run_counts_what_a_second_run_finds(made_up, counted):
    """A run leaves one file a training set, with a row a target; the next one touches nothing."""
    summary, _ = run(made_up)
    assert summary.is_complete
    assert sorted(counted) == ["en_ewt", "en_pud", "fr_pud"]
    before = overlap_files(made_up)
    assert len(before) == 1
    keys = [row["data_key"] for row in read_overlap(str(made_up)).to_pylist()]
    assert sorted(keys) == sorted(make.ref(code).key for code in ("en_pud", "fr_pud"))
    again, said = run(made_up)
    assert (again.already, again.done, said) == (summary.total, 0, "")
    assert len(counted) == 3
    assert overlap_files(made_up) == before


def test_a_count_that_fails_costs_no_trial(made_up, counted, monkeypatch):
    """Trials run all the same, one line says why; the next run counts, and trains nothing."""

    def broken(*_):
        raise RuntimeError("no such tokenizer [x]")

    with monkeypatch.context() as patch:
        patch.setattr(pieces, "piece_counts", broken)
        summary, said = run(made_up)
    assert summary.is_complete
    assert said.count("was not counted (RuntimeError: no such tokenizer [x])") == 1
    assert not (made_up / overlap.FOLDER).exists()
    again, said = run(made_up)
    counting = "Counting the subwords that en_ewt shares with 2 test sets.\n"
    assert (again.done, said) == (0, counting)
    assert len(read_overlap(str(made_up))) == 2
    assert len(counted) == 3


def test_a_wrong_file_is_told_before_anything_is_trained(made_up, monkeypatch):
    """What a trial would say after its training ends the run before it, with the file."""

    def wrong(*_):
        raise DataError("fr_pud.conllu", 5, "no tab", "Check the file.")

    monkeypatch.setattr(pieces, "piece_counts", wrong)
    with pytest.raises(DataError, match=r"fr_pud\.conllu:5"):
        run(made_up)
    assert not (made_up / "runs").exists()
