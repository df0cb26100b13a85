"""Counts of single sentences in a store: there for who asks, out of the way for all others."""

from dataclasses import replace

import pytest
import store_samples as make

from analysis import layout
from analysis.aside import read_sentences
from analysis.tables import read_tables
from sweep.compact import compact
from sweep.ledger import Ledger
from sweep.storage import Store
from trainables.spec import Request, SentenceCounts

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def counts(asked):
    """Two sentences of each target: 3 and 300 words, of which 1 and 2 were missed."""
    return tuple(
        SentenceCounts(
            split=target.split,
            treebank=target.code,
            language=target.language,
            data_key=target.key,
            metric="upos",
            items=(3, 300),
            missed=(1, 2),
        )
        for target in asked.targets
    )


def fill(store, seeds, *, counted=True):
    """Commit trials with two targets each."""
    for seed in seeds:
        job = make.job(store.where, make.targets("de_pud", "fr_pud"), make.spec(seed))
        make.commit(job, sentences=counts(job.request) if counted else ())
    return job


def shown(table):
    rows = table.select(["trial_id", "treebank", "n", "items", "missed", "spurious"]).to_pylist()
    return sorted(map(tuple, (row.values() for row in rows)))


def test_counts_survive_compaction(store):
    """Loose, compacted, or merged with a later part, the counts are the same bytes."""
    fill(store, range(3))
    before = shown(read_sentences(store.where))
    assert len(before) == 6
    assert before[0][2:] == (2, b"\x03\x00\x2c\x01", b"\x01\x02", None)
    compact(store)
    assert shown(read_sentences(store.where)) == before
    fill(store, [3])
    compact(store)
    assert len(shown(read_sentences(store.where))) == 8


def test_only_the_trials_asked_for_come(store):
    """Trials are picked in parts and among loose commits alike."""
    first = fill(store, [1])
    compact(store)
    second = fill(store, [2])
    for job in (first, second):
        rows = read_sentences(store.where, [job.trial_id])
        assert set(rows["trial_id"].to_pylist()) == {job.trial_id}
        assert len(rows) == 2


def test_stores_without_counts_are_read_as_they_were(store):
    """A store of an earlier version has no counts, takes in new trials, and then has theirs."""
    fill(store, range(2), counted=False)
    compact(store)
    assert not any("sentences" in file.path for file in store.files())
    assert len(read_sentences(store.where)) == 0
    fill(store, [7])
    compact(store)
    assert len(read_sentences(store.where)) == 2
    assert len(read_tables(store.where).scores) == 9


def test_who_reads_scores_touches_no_counts(store, monkeypatch):
    """Ledger and tables open no file of counts and unpack no column of them."""
    fill(store, range(2))
    compact(store)
    fill(store, [5])
    opened, unpacked = [], []
    read, rows = layout.Folder.read, layout.decode
    monkeypatch.setattr(
        layout.Folder, "read", lambda self, path: (opened.append(path), read(self, path))[1]
    )

    def decode(data, schema, name):
        unpacked.extend(schema.names)
        return rows(data, schema, name)

    monkeypatch.setattr(layout, "decode", decode)
    Ledger(store.where).tables()
    read_tables(store.where)
    assert opened
    assert not any("sentences" in path for path in opened)
    assert "scores" in unpacked
    assert "sentences" not in unpacked


def test_a_measurement_made_twice_counts_once(store):
    """Counts of a target that two commits hold are there once."""
    job = fill(store, [1])
    again = make.more(job, Request(targets=job.request.targets[:1]))
    make.commit(again, sentences=counts(again.request))
    assert len(read_sentences(store.where)) == 2


def test_counts_are_no_reason_to_measure_again(store):
    """A trial that was measured without counts is complete for a study that wants them."""
    job = fill(store, [1], counted=False)
    wanted = replace(job.request, sentences=True)
    assert Ledger(store.where).missing(job.trial_id, job.spec, wanted) is None
