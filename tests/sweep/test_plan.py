"""The plan: what is left of a study, what it costs, and that asking loads nothing heavy."""

import json
from collections import Counter
from dataclasses import asdict, replace

import pyarrow as pa
import pytest

from analysis.schema import TRIALS
from sweep.grid import planned
from sweep.plan import as_json, by_cell, make_plan
from sweep.resolve import Resolved
from sweep.study import build_study
from trainables.spec import DataRef, EncoderRef

FILE = DataRef(code="en_ewt", language="en", split="x", location="/f", fingerprint="sha256:f")
STUDY = build_study(
    {
        "name": "tiny",
        "encoder": {"model": "e"},
        "data": {"sources": {"en": "en_ewt"}, "train_limit": 9},
        "grid": {"task": "upos", "source": "en", "ablation": ["ref", "reinit:1"]},
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2},
        "seeds": {"report": [1, 2]},
        "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
        "similarity": {},
        "resources": {"cpus": 3},
    }
)
TRIALS_OF_STUDY = planned(
    STUDY,
    Resolved(
        encoder=EncoderRef(name="e", location="/e", fingerprint="sha256:e", n_layers=2),
        train={("upos", "en"): replace(FILE, limit=9)},
        dev={("upos", "en"): FILE},
        targets={"upos": (FILE,)},
        parallel=(FILE,),
    ),
)
PROBE, REF_1, INIT_1, REF_2, INIT_2 = TRIALS_OF_STUDY


class FakeLedger:
    """A ledger that holds what a test says."""

    def __init__(self, *, done=(), trained=(), weights=(), rows=()):
        self.done = {trial.trial_id for trial in done}
        self.trained = {trial.trial_id for trial in trained} | self.done
        self.weights = {trial.trial_id for trial in weights}
        self.rows = rows

    def missing(self, trial_id, spec, request):
        """Everything or nothing."""
        assert spec.seed >= 0
        return None if trial_id in self.done else request

    def has_trained(self, trial_id):
        """As told."""
        return trial_id in self.trained

    def has_weights(self, trial_id):
        """As told."""
        return trial_id in self.weights

    def table(self, name):
        """The trials as told."""
        assert name == "trials"
        return pa.Table.from_pylist(list(self.rows), schema=TRIALS)


def row(trial, **changes):
    """A committed trial that took 1 + 20 + 3 + 4 seconds."""
    spec = trial.spec
    values = {
        "trial_id": trial.trial_id,
        "commit_id": trial.trial_id,
        "kind": "train",
        "status": "done",
        "study": "tiny",
        "task": spec.task,
        "encoder": "e",
        "encoder_fingerprint": "sha256:e",
        "source": spec.source,
        "train": spec.train.code if spec.train else "",
        "ablation": spec.ablation,
        "seed": spec.seed,
        "cell": trial.cell_id,
        "hyper": json.dumps(asdict(spec.hyper)),
        "spec": json.dumps(asdict(spec)),
        "attempt": 1,
        "device": "cpu",
        "threads": 3,
        "load_s": 1.0,
        "train_s": 20.0,
        "evaluate_s": 3.0,
        "similarity_s": 4.0,
        "resumed_epochs": 0,
    }
    return values | changes


def plan_with(**known):
    return make_plan(STUDY, TRIALS_OF_STUDY, FakeLedger(**known), "/store")


def test_an_empty_store_leaves_everything():
    """Four trials of two cells are to be trained, the probe only measured."""
    plan = plan_with()
    assert plan.counts == {"train": 4, "measure": 1}
    assert plan.n_cells == 2
    assert plan.left == plan.trials


def test_a_full_store_leaves_nothing():
    """When all is committed, nothing is left and nothing is to pay."""
    plan = plan_with(done=TRIALS_OF_STUDY)
    assert plan.counts == {"done": 5}
    assert (plan.left, plan.seconds, plan.n_unpriced) == ((), 0, 0)


def test_kept_weights_are_measured_only():
    """A trained trial that lacks a target is measured if its weights were kept, else trained."""
    plan = plan_with(done=[PROBE, INIT_2], trained=[REF_1, REF_2], weights=[REF_1])
    assert [left.work for left in plan.trials] == ["done", "measure", "train", "train", "done"]
    assert [left.is_again for left in plan.trials] == [False, False, False, True, False]
    assert plan.n_again == 1


def test_price_is_the_median_of_comparable_trials():
    """Three trainings of 28, 28 and 58 s price the other one at 28 s, a measurement at 8 s."""
    rows = [row(REF_1), row(INIT_1), row(REF_2, train_s=50.0)]
    plan = plan_with(done=[PROBE, REF_1, INIT_1], trained=[REF_2], weights=[REF_2], rows=rows)
    assert [left.seconds for left in plan.left] == [8.0, 28.0]
    assert plan.seconds == 36.0
    assert plan.n_unpriced == 0


@pytest.mark.parametrize(
    "change",
    [
        {"threads": 2},
        {"device": "NVIDIA H200"},
        {"status": "pruned"},
        {"status": "failed"},
        {"resumed_epochs": 1},
        {"task": "ner"},
        {"encoder_fingerprint": "sha256:other"},
        {"train": "ru_gsd"},
        {"spec": json.dumps({"hyper": {"epochs": 3}, "train": {"limit": 9}})},
        {"spec": json.dumps({"hyper": {"epochs": 2}, "train": {"limit": None}})},
    ],
)
def test_trials_of_another_kind_price_nothing(change):
    """A trial on other threads, data, epochs or devices says nothing about this one."""
    plan = plan_with(done=[PROBE], rows=[row(REF_1, **change)])
    assert plan.n_unpriced == 4
    assert plan.seconds == 0


def test_json_counts_and_lists_every_trial():
    """Scripts read counts, the price (null when unknown), and each trial with its id."""
    told = json.loads(json.dumps(as_json(plan_with(done=[PROBE, REF_1]))))
    assert (told["cells"], told["trials"], told["train"], told["done"]) == (2, 5, 3, 2)
    assert (told["measure"], told["seconds"], told["unpriced"]) == (0, None, 3)
    assert [trial["trial_id"] for trial in told["list"]] == [t.trial_id for t in TRIALS_OF_STUDY]
    assert told["list"][2]["targets"] == ["en_ewt"]


def test_cells_count_what_is_left():
    """Each cell says how many of its trials are done."""
    cells = by_cell(plan_with(done=[REF_1]))
    assert cells["upos", "en", "ref"] == Counter(done=1, train=1)
    assert cells["upos", "en", "reinit:1"] == Counter(train=2)


def test_notes_say_what_the_study_cannot_show():
    """No reference, a source without a test set of its own, and a single seed are remarked on."""
    table = STUDY.model_dump(exclude={"protocol"})
    table["grid"]["ablation"] = ("reinit:1",)
    table["evaluate"]["targets"] = ("fr",)
    table["seeds"]["report"] = (1,)
    notes = make_plan(build_study(table), (), FakeLedger()).notes
    assert [note.split(":")[0] for note in notes] == [
        "no 'ref' among the ablations",
        "source 'en' is not among the targets",
        "one seed",
    ]
    assert plan_with().notes == ()


def test_a_gap_is_missed_by_task():
    """A source that one task is not tested on is told with the task, once for all that lack it."""
    table = {
        "name": "both",
        "encoder": {"model": "e"},
        "data": {"sources": {"en": "en_ewt"}},
        "grid": {"task": ["upos", "ner"], "source": "en"},
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2},
        "seeds": {"report": [1, 2]},
        "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
        "tasks": {"ner": {"targets": ["wikiann-fr"]}},
    }
    notes = make_plan(build_study(table), (), FakeLedger()).notes
    told = "source 'en' is not among the targets of ner: its cross-lingual gap is undefined."
    assert notes == (told,)
