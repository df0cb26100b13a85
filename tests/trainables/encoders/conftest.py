"""One tiny encoder an architecture, written once."""

import pytest
import torch

from trainables.encoders.pretrained import encoder_ref
from trainables.encoders.tiny import KINDS, tiny_encoder


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Tiny products gain nothing from threads, and lose much on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("architectures")
    words = ["cat", "dogs"]
    return {
        name: tiny_encoder(root / name, architecture=name, vocabulary=words, seed=1)
        for name in KINDS
    }


@pytest.fixture(params=sorted(KINDS))
def ref(request, tiny_folders):
    """Every architecture in turn."""
    return encoder_ref(str(tiny_folders[request.param]))


@pytest.fixture
def bert(tiny_folders):
    return encoder_ref(str(tiny_folders["bert"]))
