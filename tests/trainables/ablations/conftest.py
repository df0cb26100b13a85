"""A tiny encoder of each architecture, and specs of ablated trials on it."""

from dataclasses import replace

import pytest
import torch

from trainables.encoders.pretrained import encoder_ref
from trainables.encoders.tiny import KINDS, tiny_encoder
from trainables.spec import HyperParameters, TrialOptions, TrialSpec


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Tiny products gain nothing from threads, and lose much on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def refs(tmp_path_factory):
    root = tmp_path_factory.mktemp("ablated")
    return {
        name: encoder_ref(str(tiny_encoder(root / name, architecture=name, seed=1)))
        for name in KINDS
    }


@pytest.fixture(params=sorted(KINDS))
def ref(request, refs):
    """Every architecture in turn."""
    return refs[request.param]


@pytest.fixture
def bert(refs):
    return refs["bert"]


@pytest.fixture
def make_spec():
    """A spec of one ablated trial."""

    def make(ref, *, seed=1, **options):
        spec = TrialSpec(
            task="upos",
            encoder=ref,
            source="en",
            train=None,
            dev=None,
            ablation="ref",
            hyper=HyperParameters(learning_rate=1e-3, batch_size=2, epochs=1),
            seed=seed,
        )
        return replace(spec, options=TrialOptions(**options))

    return make
