import logging
from dataclasses import replace

import pytest
import store_samples as make

from analysis.rowfiles import TableError
from sweep.commit import commit_path
from sweep.compact import compact
from sweep.ledger import Ledger
from sweep.storage import Store

pytestmark = pytest.mark.usefixtures("quick_disk")


def left(store, job, asked):
    return Ledger(str(store)).missing(job.trial_id, job.spec, asked)


def test_empty_store_knows_nothing(tmp_path):
    """In a store that does not exist everything is missing, and nothing has failed."""
    ledger = Ledger(str(tmp_path / "none"))
    job = make.job(tmp_path, make.targets("de_pud"))
    assert ledger.missing(job.trial_id, job.spec, job.request) == job.request
    assert ledger.failures() == ()
    assert len(ledger.table("trials")) == 0


def test_finished_request_leaves_nothing(tmp_path):
    """What was committed is not asked for again, in whatever order it is named."""
    job = make.job(tmp_path, make.targets("de_pud", "fr_pud"))
    make.commit(job)
    assert left(tmp_path, job, job.request) is None
    assert left(tmp_path, job, make.targets("fr_pud", "de_pud")) is None
    assert left(tmp_path, job, make.targets()) is None


def test_only_new_targets_are_left(tmp_path):
    """Of a request with one new target, exactly that target is left."""
    job = make.job(tmp_path, make.targets("de_pud", "fr_pud"))
    make.commit(job)
    asked = make.targets("de_pud", "ru_pud", "fr_pud")
    assert left(tmp_path, job, asked) == make.targets("ru_pud")
    make.commit(make.more(job, make.targets("ru_pud")))
    assert left(tmp_path, job, asked) is None


def test_other_content_under_an_old_name_is_new(tmp_path):
    """A target whose file has changed is left to score, though its code is known."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.commit(job)
    changed = replace(make.ref("de_pud"), fingerprint="sha256:other")
    asked = replace(job.request, targets=(changed,))
    assert left(tmp_path, job, asked) == asked


def test_untrained_trial_needs_the_whole_request(tmp_path):
    """A trial that failed or was pruned is asked for in full."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.fail(job)
    assert left(tmp_path, job, job.request) == job.request
    make.commit(job, scores=(), pruned_at=1)
    assert left(tmp_path, job, job.request) == job.request
    ledger = Ledger(str(tmp_path))
    assert not ledger.has_trained(job.trial_id)
    assert dict(ledger.pruned()) == {job.trial_id: 1}


def test_new_language_leaves_its_pairs_only(tmp_path):
    """A language added to the parallel sentences leaves it and the pivot to compare."""
    job = make.job(tmp_path, make.similarity("en_pud", "de_pud", "fr_pud"))
    make.commit(job)
    asked = make.similarity("en_pud", "de_pud", "fr_pud", "ru_pud")
    assert left(tmp_path, job, asked) == make.similarity("en_pud", "ru_pud")


def test_new_measure_leaves_that_measure_only(tmp_path):
    """A measure added leaves all languages to compare, by that measure."""
    job = make.job(tmp_path, make.similarity("en_pud", "de_pud"))
    make.commit(job)
    asked = make.similarity("en_pud", "de_pud", measures=("linear-cka", "cosine"))
    assert left(tmp_path, job, asked) == make.similarity("en_pud", "de_pud", measures=("cosine",))


def test_pair_counts_in_either_direction(tmp_path):
    """German against English is known when English against German was measured."""
    job = make.job(tmp_path, make.similarity("en_pud", "de_pud"))
    make.commit(job)
    assert left(tmp_path, job, make.similarity("en_pud", "de_pud", pivots=("de",))) is None


def test_dropped_sentences_keep_all_languages(tmp_path):
    """Where unmatched sentences are dropped, all languages stay, as they decide which are."""
    job = make.job(tmp_path, make.similarity("en_pud", "de_pud", unmatched="drop"))
    make.commit(job)
    asked = make.similarity("en_pud", "de_pud", "ru_pud", unmatched="drop")
    assert left(tmp_path, job, asked) == asked


def test_probe_answers_for_pretrained_states_alone(tmp_path):
    """Comparisons of pretrained states are known of the probe, and of no fine-tuned trial."""
    asked = make.similarity("en_pud", "de_pud")
    probe = make.job(tmp_path, asked, make.probe())
    trained = make.job(tmp_path, make.targets())
    make.commit(probe)
    make.commit(trained)
    assert left(tmp_path, probe, asked) is None
    assert left(tmp_path, trained, asked) == asked


def test_success_supersedes_failures(tmp_path):
    """A failure is listed until the same job succeeds; then neither list nor table has it."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.fail(job, kind="out-of-memory", message="no room")
    ledger = Ledger(str(tmp_path))
    (failure,) = ledger.failures()
    assert (failure.job_id, failure.kind, failure.message) == (
        job.job_id,
        "out-of-memory",
        "no room",
    )
    make.commit(job)
    ledger.refresh()
    assert ledger.failures() == ()
    assert ledger.table("trials").column("status").to_pylist() == ["done"]


def test_refresh_reads_only_what_is_new(tmp_path, monkeypatch):
    """A second look reads no commit again, and one more commit costs one file."""
    first = make.job(tmp_path, make.targets("de_pud"), make.spec(1))
    second = make.job(tmp_path, make.targets("de_pud"), make.spec(2))
    make.commit(first)
    store = Store(tmp_path)
    ledger = Ledger(store)
    read = []
    whole = store.read
    monkeypatch.setattr(store, "read", lambda path: (read.append(path), whole(path))[1])
    assert ledger.refresh() == ()
    make.commit(second)
    assert ledger.refresh() == (second.job_id,)
    assert [path for path in read if "commits" in path] == [commit_path(second.job_id)]


def test_compaction_changes_no_answer(tmp_path):
    """What a ledger says is the same before, across and after a compaction."""
    jobs = [make.job(tmp_path, make.targets("de_pud"), make.spec(seed)) for seed in range(5)]
    for job in jobs[:4]:
        make.commit(job)
    make.fail(jobs[4], message="no luck")
    old = Ledger(str(tmp_path))
    before = {name: old.table(name) for name in ("trials", "scores", "curves")}
    compact(Store(tmp_path))
    assert old.refresh() == ()
    for ledger in (old, Ledger(str(tmp_path))):
        assert {name: ledger.table(name) for name in before} == before
        assert all(ledger.has_trained(job.trial_id) for job in jobs[:4])
        assert [failure.message for failure in ledger.failures()] == ["no luck"]


def test_late_duplicate_of_a_compacted_commit_is_ignored(tmp_path):
    """A worker thought dead that commits again after a compaction changes nothing."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.commit(job, 0.5)
    compact(Store(tmp_path))
    make.commit(job, 0.75)
    ledger = Ledger(str(tmp_path))
    assert len(ledger.table("trials")) == 1
    assert set(ledger.table("scores").column("value").to_pylist()) == {0.5}


def test_target_measured_twice_counts_once(tmp_path):
    """When two jobs scored one target, the first row alone is in the table."""
    job = make.job(tmp_path, make.targets("de_pud"))
    make.commit(job, 0.5)
    make.commit(make.more(job, make.targets("de_pud", "ru_pud")), 0.75)
    rows = Ledger(str(tmp_path)).table("scores").to_pylist()
    assert [(row["treebank"], row["value"]) for row in rows] == [
        ("en_ewt", 0.5),
        ("de_pud", 0.5),
        ("ru_pud", 0.75),
    ]


def test_torn_and_foreign_files_are_named_once_and_left_alone(tmp_path, caplog):
    """A torn commit counts as not done, is warned about once, and stays on disk."""
    good = make.job(tmp_path, make.targets("de_pud"), make.spec(1))
    torn = make.job(tmp_path, make.targets("de_pud"), make.spec(2))
    make.commit(good)
    store = Store(tmp_path)
    store.publish(commit_path(torn.job_id), store.read(commit_path(good.job_id))[:-9])
    store.publish("commits/no/notes.txt", b"not ours")
    store.publish(commit_path("ab-renamed"), store.read(commit_path(good.job_id)))
    with caplog.at_level(logging.WARNING):
        ledger = Ledger(str(tmp_path))
        ledger.refresh()
    assert caplog.text.count(commit_path(torn.job_id)) == 1
    assert caplog.text.count("notes.txt") == 1
    assert caplog.text.count("ab-renamed") == 1
    assert ledger.missing(torn.trial_id, torn.spec, torn.request) == torn.request
    assert ledger.missing(good.trial_id, good.spec, good.request) is None
    assert len(store.files("commits")) == 4


def test_torn_table_stops_with_its_name(tmp_path):
    """A torn compacted table is an error that names the file, not a hole in the numbers."""
    make.commit(make.job(tmp_path, make.targets("de_pud")))
    store = Store(tmp_path)
    compact(store)
    (scores,) = [file.path for file in store.files("tables") if "scores" in file.path]
    store.publish(scores, store.read(scores)[:-20])
    ledger = Ledger(str(tmp_path))
    job = make.job(tmp_path, make.targets("de_pud"))
    for _ in range(2):  # it does not pass the second time either
        with pytest.raises(TableError, match=r"scores\.parquet: torn"):
            ledger.missing(job.trial_id, job.spec, job.request)
    with pytest.raises(TableError, match=r"scores\.parquet: torn"):
        ledger.tables()


def test_what_was_compacted_again_before_anybody_asked_is_known(tmp_path):
    """The first part is gone when its measurements are asked for; they are in the one after it."""
    first = make.job(tmp_path, make.targets("de_pud"), make.spec(1))
    second = make.job(tmp_path, make.targets("de_pud"), make.spec(2))
    store = Store(tmp_path)
    make.commit(first)
    compact(store)
    ledger = Ledger(str(tmp_path))
    before = {file.path for file in store.files("tables")}
    make.commit(second)
    compact(store)
    assert not before & {file.path for file in store.files("tables") if "parquet" in file.path}
    assert ledger.missing(first.trial_id, first.spec, first.request) is None
    assert ledger.missing(second.trial_id, second.spec, second.request) == second.request
    ledger.refresh()
    assert ledger.missing(second.trial_id, second.spec, second.request) is None


def test_missing_table_stops_with_a_message(tmp_path):
    """A part that CURRENT names and nobody finds is an error that names it."""
    make.commit(make.job(tmp_path, make.targets("de_pud")))
    store = Store(tmp_path)
    compact(store)
    for file in store.files("tables"):
        if file.path.endswith(".parquet"):
            store.delete(file.path)
    with pytest.raises(TableError, match="000001-"):
        Ledger(str(tmp_path))


def test_storage_that_cannot_be_listed_stops_with_a_message(tmp_path):
    """A store whose commits cannot be listed is an error, not an empty ledger."""
    (tmp_path / "commits").write_text("a file in place of the folder")
    with pytest.raises(TableError, match=r"cannot read .*commits"):
        Ledger(str(tmp_path))


def test_kept_weights_are_known_while_they_lie_there(tmp_path):
    """Weights count as kept when a commit says so and the file is still there."""
    job = make.job(tmp_path, replace(make.targets("de_pud"), keep="best"))
    weights = Store(job.workspace.checkpoints)
    weights.publish("best.safetensors", b"weights")
    make.commit(job)
    ledger = Ledger(str(tmp_path))
    assert ledger.has_weights(job.trial_id)
    weights.delete("best.safetensors")
    assert not ledger.has_weights(job.trial_id)


def test_tables_of_some_trials(tmp_path):
    """Tables can be had of some trials alone, from compacted and loose commits alike."""
    jobs = [make.job(tmp_path, make.targets("de_pud"), make.spec(seed)) for seed in range(3)]
    make.commit(jobs[0])
    make.commit(jobs[1])
    compact(Store(tmp_path))
    make.commit(jobs[2])
    wanted = {jobs[1].trial_id, jobs[2].trial_id}
    tables = Ledger(str(tmp_path)).tables(wanted)
    assert set(tables.trials.column("trial_id").to_pylist()) == wanted
    assert set(tables.scores.column("trial_id").to_pylist()) == wanted
    assert len(tables.scores) == 4
