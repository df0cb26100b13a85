"""Subword overlap in a store: counted once, extended, and found by the report."""

import json
from dataclasses import asdict, replace

import pytest
import store_samples as make

from analysis.shared import data_key
from sweep import overlap
from sweep.grid import PlannedTrial
from sweep.overlap import count_overlap, read_overlap
from sweep.storage import Store
from trainables.data import pieces
from trainables.data.pieces import PieceCounts
from trainables.spec import Request

pytestmark = pytest.mark.usefixtures("quick_disk")

PIECES = {
    "en_ewt": ([1, 2, 3], [5, 5, 5]),
    "de_pud": ([1, 2, 8, 9], [6, 2, 1, 1]),
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
    store = Store(tmp_path)
    assert count_overlap([planned("de_pud"), planned("de_pud", seed=2)], store, "c") == 1
    assert counted == ["en_ewt", "de_pud"]
    assert count_overlap([planned("de_pud", "fr_pud")], store, "c") == 1
    assert count_overlap([planned("de_pud", "fr_pud")], store, "c") == 0
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
