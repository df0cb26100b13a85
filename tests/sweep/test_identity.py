"""Ids: what enters them, what does not, and that they stay what they were."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep.identity import cell_id, request_hash, trial_id
from trainables.identity import NOT_IDENTITY, identity
from trainables.spec import (
    DataRef,
    EncoderRef,
    HyperParameters,
    Request,
    SimilarityRequest,
    TrialOptions,
    TrialSpec,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "trial_ids.json"

ENCODER = EncoderRef(name="e", location="/models/e", fingerprint="sha256:e0", n_layers=12)
TRAIN = DataRef(
    code="en_ewt", language="en", split="train", location="/d/a", fingerprint="sha256:a1", limit=9
)
DEV = replace(TRAIN, split="dev", location="/d/b", fingerprint="sha256:b2", limit=None)
SPEC = TrialSpec(
    task="upos",
    encoder=ENCODER,
    source="en",
    train=TRAIN,
    dev=DEV,
    ablation="reinit:1-2",
    hyper=HyperParameters(learning_rate=4e-4, batch_size=16, epochs=2),
    seed=1,
)
PROBE = replace(
    SPEC,
    task="probe",
    source="",
    train=None,
    dev=None,
    ablation="ref",
    hyper=HyperParameters(learning_rate=0.0, batch_size=0, epochs=0),
    seed=0,
)

CHANGED = {  # another value for every identity field; a new field needs a line here
    TrialSpec: {
        "task": "ner",
        "encoder": replace(ENCODER, fingerprint="sha256:e1"),
        "source": "ru",
        "train": replace(TRAIN, limit=8),
        "dev": None,
        "ablation": "ref",
        "hyper": HyperParameters(learning_rate=1e-4, batch_size=16, epochs=2),
        "seed": 2,
        "options": TrialOptions(overlap=32),
        "precision": "bf16",
    },
    HyperParameters: {
        "learning_rate": 5e-5,
        "batch_size": 32,
        "epochs": 3,
        "warmup": 0.2,
        "schedule": "constant",
        "weight_decay": 0.01,
        "beta1": 0.8,
        "beta2": 0.99,
        "epsilon": 1e-6,
        "clip_norm": 1.0,
    },
    TrialOptions: {
        "max_length": 128,
        "overlap": 0,
        "denominator": "legacy",
        "head_dropout": 0.2,
        "reinit": "torch-default",
        "frozen_mode": "train",
        "batching": "random",
        "pool_special": True,
        "select": "uas",
        "parser": "beto",
        "deprels": "coarse",
    },
    EncoderRef: {"fingerprint": "hub:1"},
    DataRef: {"layout": "tsv", "fingerprint": "sha256:c3", "limit": 10, "skip": 5},
}
LATER_OPTIONS = {"denominator", "parser", "deprels", "pool_special"}
"""Options that were not there when the golden ids were written."""

PARTS = {
    TrialSpec: SPEC,
    HyperParameters: SPEC.hyper,
    TrialOptions: SPEC.options,
    EncoderRef: ENCODER,
    DataRef: TRAIN,
}


def with_part(part: object) -> TrialSpec:
    """`SPEC` with one of its parts exchanged."""
    if isinstance(part, TrialSpec):
        return part
    slot = {
        HyperParameters: "hyper",
        TrialOptions: "options",
        EncoderRef: "encoder",
        DataRef: "train",
    }
    return replace(SPEC, **{slot[type(part)]: part})


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, changes in CHANGED.items() for name in changes]
)
def test_every_identity_field_changes_the_trial_id(kind, name):
    """Another value of any identity field is another trial."""
    part = replace(PARTS[kind], **{name: CHANGED[kind][name]})
    assert trial_id(with_part(part)) != trial_id(SPEC)


@pytest.mark.parametrize("kind", CHANGED, ids=lambda kind: kind.__name__)
def test_every_field_is_declared_identity_or_not(kind):
    """A field added to a spec is either tried above or listed as not identity."""
    declared = set(CHANGED[kind]) | NOT_IDENTITY.get(kind, frozenset())
    assert declared == {field.name for field in fields(kind)}


@given(name=st.text(), location=st.text(), revision=st.text(), layers=st.integers(1, 99))
def test_names_and_locations_of_an_encoder_do_not_change_the_id(name, location, revision, layers):
    """The same weights under another name, in another place, are the same trial."""
    moved = replace(ENCODER, name=name, location=location, revision=revision, n_layers=layers)
    assert trial_id(replace(SPEC, encoder=moved)) == trial_id(SPEC)


@given(code=st.text(), language=st.text(), location=st.text())
def test_names_and_locations_of_data_do_not_change_the_id(code, language, location):
    """The same file under another name, in another place, is the same trial."""
    moved = replace(TRAIN, code=code, language=language, location=location, split="x")
    assert trial_id(replace(SPEC, train=moved)) == trial_id(SPEC)


def test_spelled_out_defaults_do_not_change_the_id():
    """Writing a default into a study file changes nothing."""
    hyper = HyperParameters(
        learning_rate=4e-4, batch_size=16, epochs=2, warmup=0.1, schedule="linear", clip_norm=0
    )
    options = TrialOptions(max_length=512, select="")
    assert trial_id(replace(SPEC, hyper=hyper, options=options)) == trial_id(SPEC)


def test_only_what_differs_from_its_default_is_hashed():
    """A field that holds its default leaves no trace, so that one added later changes no id."""
    assert identity(SPEC.hyper) == {"learning_rate": 4e-4, "batch_size": 16, "epochs": 2}
    assert identity(SPEC.options) == {}
    assert "options" not in identity(SPEC)


def test_whole_and_fractional_spelling_of_a_number_are_one():
    """A learning rate of 1 is that of 1.0."""
    one = replace(SPEC, hyper=replace(SPEC.hyper, learning_rate=1))
    assert trial_id(one) == trial_id(replace(SPEC, hyper=replace(SPEC.hyper, learning_rate=1.0)))


@given(st.permutations(list(identity(SPEC))))
def test_key_order_does_not_change_the_id(order):
    """The id does not depend on the order in which the fields are written down."""
    from sweep.identity import PROTOCOL_VERSION, _digest

    content = {"v": PROTOCOL_VERSION, **identity(SPEC)}
    shuffled = {name: content[name] for name in [*order, "v"]}
    assert _digest(b"trial", shuffled) == trial_id(SPEC)


def test_a_number_that_is_not_finite_is_refused():
    """A learning rate of NaN has no id."""
    with pytest.raises(ValueError, match="Out of range float"):
        trial_id(replace(SPEC, hyper=replace(SPEC.hyper, learning_rate=float("nan"))))


def test_a_cell_is_a_trial_less_hyper_parameters_and_seed():
    """Trials of one cell differ in hyper-parameters and seed only."""
    other = replace(SPEC, seed=7, hyper=HyperParameters(learning_rate=1, batch_size=1, epochs=1))
    assert cell_id(other) == cell_id(SPEC)
    assert cell_id(replace(SPEC, ablation="ref")) != cell_id(SPEC)
    assert cell_id(SPEC) != trial_id(SPEC)


SIMILARITY = SimilarityRequest(
    parallel=(TRAIN, DEV), pivots=("en", "ru"), measures=("linear-cka", "cosine")
)
REQUEST = Request(targets=(TRAIN, DEV), similarity=SIMILARITY)


def test_the_order_of_a_request_does_not_matter():
    """Asking for the same things in another order, from another place, is the same request."""
    turned = Request(
        targets=(replace(DEV, location="/elsewhere"), TRAIN),
        similarity=SimilarityRequest(
            parallel=(DEV, TRAIN), pivots=("ru", "en"), measures=("cosine", "linear-cka")
        ),
    )
    assert request_hash(turned) == request_hash(REQUEST)


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, targets=(TRAIN,)),
        replace(REQUEST, targets=(TRAIN, replace(DEV, code="fr_gsd"))),
        replace(REQUEST, keep="best"),
        replace(REQUEST, similarity=None),
        replace(REQUEST, similarity=replace(SIMILARITY, parallel=(TRAIN,))),
        replace(REQUEST, similarity=replace(SIMILARITY, pivots=("en",))),
        replace(REQUEST, similarity=replace(SIMILARITY, measures=("cosine",))),
        replace(REQUEST, similarity=replace(SIMILARITY, null_draws=3)),
        replace(REQUEST, similarity=replace(SIMILARITY, unmatched="drop")),
    ],
)
def test_another_wish_is_another_request(other):
    """Whatever else is to be measured has a hash of its own."""
    assert request_hash(other) != request_hash(REQUEST)


def golden_ids() -> dict[str, dict[str, str]]:
    """Ids of a fixed set of specs; `python tests/sweep/test_identity.py` renews the file."""
    specs = {
        "reinit": SPEC,
        "probe": PROBE,
        "hub encoder, all options": replace(
            SPEC,
            encoder=replace(ENCODER, fingerprint="hub:0f1e2d"),
            hyper=HyperParameters(**CHANGED[HyperParameters]),
            options=TrialOptions(
                **{k: v for k, v in CHANGED[TrialOptions].items() if k not in LATER_OPTIONS}
            ),
            precision="fp16",
        ),
    }
    ids = {name: {"trial": trial_id(spec), "cell": cell_id(spec)} for name, spec in specs.items()}
    return {**ids, "request": {"hash": request_hash(REQUEST)}}


def test_ids_are_those_of_earlier_versions():
    """Results of earlier versions are still found; if not, PROTOCOL_VERSION must have risen."""
    assert golden_ids() == json.loads(GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_ids(), indent=2) + "\n", encoding="utf-8")
