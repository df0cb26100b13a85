"""Specs over the toy treebanks and a tiny seeded encoder."""

from dataclasses import replace

import pytest

from trainables.data.treebanks import data_ref
from trainables.encoders.pretrained import encoder_ref
from trainables.encoders.tiny import tiny_encoder
from trainables.spec import HyperParameters, Request, SimilarityRequest, TrialSpec, Workspace


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny", n_layers=4)
    return encoder_ref(str(folder))


@pytest.fixture(scope="session")
def spec(encoder, toy_root):
    return TrialSpec(
        task="upos",
        encoder=encoder,
        source="aa",
        train=data_ref(toy_root, "aa_toy", "train"),
        dev=data_ref(toy_root, "aa_toy", "dev"),
        ablation="ref",
        hyper=HyperParameters(learning_rate=5e-3, batch_size=8, epochs=3),
        seed=1,
    )


@pytest.fixture(scope="session")
def probe(spec):
    hyper = HyperParameters(learning_rate=0.0, batch_size=1, epochs=0)
    return replace(spec, task="probe", train=None, dev=None, hyper=hyper, seed=0)


@pytest.fixture(scope="session")
def request_all(toy_root):
    parallel = tuple(data_ref(toy_root, f"{code}_pud", "test") for code in ("aa", "bb", "cc"))
    similarity = SimilarityRequest(parallel=parallel, pivots=("aa",), null_draws=5)
    return Request(targets=parallel, similarity=similarity)


@pytest.fixture
def workspace(tmp_path, tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "cache"
    return Workspace(checkpoints=str(tmp_path / "checkpoints"), cache=str(cache))
