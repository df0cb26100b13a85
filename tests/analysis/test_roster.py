"""Who took part, and why some have no numbers."""

import pyarrow as pa
import pytest

from analysis.roster import roster
from analysis.schema import TRIALS


@pytest.fixture
def rows(make_tables):
    """Rows of `trials` as dictionaries: reference and one pair, two seeds."""
    return make_tables((0, 1), ablations=("ref", "reinit:1-2")).trials.to_pylist()


def known(rows, planned=None):
    """The roster of rows given as dictionaries."""
    table = pa.Table.from_pylist(rows, schema=TRIALS)
    return roster(table, None if planned is None else pa.Table.from_pylist(planned, schema=TRIALS))


def test_probes_stand_apart(rows):
    """The pretrained encoder's trial is no trial of a setting."""
    found = known(rows)
    assert len(found.probes) == 1
    assert [trial.ablation for trial in found.trials] == ["ref"] * 2 + ["reinit:1-2"] * 2


def test_one_setting_whatever_seed_ablation_and_file_location(rows):
    """Seed, ablation and where files lie do not split a setting."""
    for i, row in enumerate(rows):
        row["spec"] = row["spec"].replace("train.conllu", f"elsewhere-{i}.conllu")
    found = known(rows)
    assert len(found.settings) == 1
    assert found.settings[0].detail == ""


def test_another_option_is_another_setting_and_says_which(rows):
    """Trials of another window length are not compared with the rest, and labelled."""
    for row in rows[-2:]:
        row["spec"] = row["spec"].replace('"max_length": 512', '"max_length": 128')
        row["cell"] += "x"
    details = {setting.detail for setting in known(rows).settings}
    assert details == {"options.max_length=512", "options.max_length=128"}


def test_a_failed_trial_keeps_its_reason(make_tables):
    """A failure is listed with its kind and message."""
    tables = make_tables(ablations=("ref", "reinit:1-2"), failed=[("reinit:1-2", 0)])
    (absent,) = roster(tables.trials).absent
    assert absent.status == "failed"
    assert absent.reason == "failed (out-of-memory): CUDA out of memory: tried <2.5 GiB>"


def test_a_later_success_turns_a_failure_into_a_mishap(rows):
    """A trial with a failed attempt and a result is done; the attempt is remembered."""
    attempt = rows[-1] | {"status": "failed", "kind": "failed", "failure": "node lost",
                          "failure_kind": "preempted", "commit_id": "zz.failed-1"}  # fmt: skip
    found = known([*rows, attempt])
    assert found.absent == ()
    assert found.mishaps == ((attempt["trial_id"], "failed (preempted): node lost"),)


def test_a_pruned_trial_is_absent(rows):
    """A pruned trial has no numbers and says when it was stopped."""
    rows[-1] |= {"status": "pruned", "pruned_at": 1}
    assert [trial.reason for trial in known(rows).absent] == ["pruned after epoch 1"]


def test_a_seed_that_others_ran_is_missing(make_tables):
    """An ablation without a seed that the reference has is said to lack it."""
    tables = make_tables((0, 1), ablations=("ref", "reinit:1-2"), absent=[("reinit:1-2", 1)])
    (absent,) = roster(tables.trials).absent
    assert (absent.ablation, absent.seed, absent.status) == ("reinit:1-2", 1, "missing")


def test_a_search_leaves_no_holes(rows):
    """An ablation tried with several hyper-parameters need not run each with every seed."""
    rows[-1]["hyper"] = '{"learning_rate": 0.1}'
    assert known(rows).absent == ()


def test_planned_trials_without_rows_are_missing(rows):
    """What the study asks for and nobody ran is listed, once each."""
    found = known(rows[:-1], planned=rows)
    assert [(t.trial_id, t.reason) for t in found.absent] == [(rows[-1]["trial_id"], "not run yet")]


def test_no_trials_no_settings():
    """An empty table has an empty roster."""
    assert known([]).trials == ()
