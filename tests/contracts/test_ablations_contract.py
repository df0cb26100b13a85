"""Every ablation of the registry through one suite: a new one needs an example here, no more."""

import pytest
import torch

from trainables.ablations.base import AblationError, apply, canonical, parameter_hash, parse
from trainables.encoders.pretrained import encoder_ref, load_encoder
from trainables.encoders.tiny import tiny_encoder
from trainables.registry import ABLATIONS
from trainables.spec import HyperParameters, TrialSpec

N_LAYERS = 4
EXAMPLES = {
    "ref": ("ref",),
    "all": ("all",),
    "reinit": ("reinit:1-2", "reinit:4", "reinit:1-4"),
    "freeze": ("freeze:0", "freeze:2", "freeze:4"),
    "gold-pos": ("gold-pos", "reinit:1-2+gold-pos"),
}
TEXTS = [text for texts in EXAMPLES.values() for text in texts]


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("contract") / "tiny", n_layers=N_LAYERS)
    return TrialSpec(
        task="parsing",
        encoder=encoder_ref(str(folder)),
        source="en",
        train=None,
        dev=None,
        ablation="ref",
        hyper=HyperParameters(learning_rate=1e-3, batch_size=2, epochs=1),
        seed=1,
    )


def state(encoder):
    return {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}


def test_every_ablation_has_an_example():
    """The suite covers the whole registry."""
    assert set(EXAMPLES) == set(ABLATIONS)


@pytest.mark.parametrize("text", TEXTS)
def test_examples_are_spelt_canonically(text):
    """Reading and spelling an example gives it back, and reading it twice gives equal values."""
    assert canonical(text, N_LAYERS) == text
    assert parse(text, N_LAYERS) == parse(text, N_LAYERS)


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_deterministic_and_leaves_global_random_state_alone(text, spec):
    """Twice on fresh copies gives the same bits, whatever the global generator did between."""
    first, second = load_encoder(spec.encoder), load_encoder(spec.encoder)
    torch.manual_seed(1)
    report = apply(first, text, spec=spec)
    after = torch.rand(2)
    assert apply(second, text, spec=spec) == report
    assert parameter_hash(first) == parameter_hash(second)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(2), after)


@pytest.mark.parametrize("text", TEXTS)
def test_it_reports_what_it_did_and_does_nothing_else(text, spec):
    """Changed weights are at most those reported; frozen ones are exactly those reported."""
    encoder = load_encoder(spec.encoder)
    before = state(encoder)
    report = apply(encoder, text, spec=spec)
    n_changed = sum(int((p != before[name]).sum()) for name, p in encoder.named_parameters())
    assert n_changed <= report.n_reinitialised
    assert (n_changed == 0) == (report.n_reinitialised == 0)
    n_frozen = sum(p.numel() for p in encoder.parameters() if not p.requires_grad)
    assert n_frozen == report.n_frozen
    assert [name for name, _ in encoder.named_parameters()] == list(before)


@pytest.mark.parametrize("text", TEXTS)
def test_it_copies_no_model(text, spec):
    """Every parameter is still the same object: an optimiser made before would still hold it."""
    encoder = load_encoder(spec.encoder)
    before = [id(parameter) for parameter in encoder.parameters()]
    apply(encoder, text, spec=spec)
    assert [id(parameter) for parameter in encoder.parameters()] == before


@pytest.mark.parametrize("text", TEXTS)
def test_all_weights_stay_finite_and_the_encoder_still_runs(text, spec):
    """An ablated encoder encodes, and every weight is a number."""
    encoder = load_encoder(spec.encoder)
    apply(encoder, text, spec=spec)
    assert all(p.isfinite().all() for p in encoder.parameters())
    ids = torch.tensor([[2, 7, 8, 3]])
    assert encoder(ids, torch.ones_like(ids)).last.isfinite().all()


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_wrong_argument_is_refused_before_anything_is_loaded(name):
    """Each refuses nonsense after its colon, with the whole text in the message."""
    with pytest.raises(AblationError, match=f'ablation = "{name}:x y"'):
        canonical(f"{name}:x y", N_LAYERS)
