"""The tiny encoder that ships: it is the one of its card, and it carries transfer."""

import re
from dataclasses import replace

import pytest

from trainables.data.treebanks import data_ref
from trainables.encoders.fingerprint import encoder_ref, folder_fingerprint, local_folder
from trainables.encoders.pretrained import load_encoder, load_tokenizer
from trainables.spec import HyperParameters, Request, TrialSpec, Workspace
from trainables.toy.corpus import cached_toy, parallel
from trainables.toy.languages import LANGUAGES, SOURCE
from trainables.trial import run_trial


@pytest.fixture(scope="module")
def toy():
    return encoder_ref("toy")


def test_the_encoder_is_the_one_of_its_card(toy):
    """Content, depth and width are those that the README beside the weights states."""
    folder = local_folder(toy)
    card = (folder / "README.md").read_text()
    assert re.search(r"`(sha256:[0-9a-f]{64})`", card)[1] == folder_fingerprint(folder)
    encoder = load_encoder(toy)
    assert toy.n_layers == encoder.n_layers == 12
    assert f"width {encoder.hidden_size}" in card
    n_parameters = sum(parameter.numel() for parameter in encoder.parameters())
    assert f"{n_parameters:,} parameters" in card


def test_files_are_small(toy):
    """No file is larger than what any code host takes."""
    assert max(path.stat().st_size for path in local_folder(toy).iterdir()) < 1_000_000


def test_every_word_of_every_language_has_pieces(toy):
    """No word of the parallel sentences is unknown, and words have fewer than three pieces."""
    tokenizer = load_tokenizer(toy)
    for code in LANGUAGES:
        words = [word for sentence in parallel(code) for word in sentence.words]
        pieces = tokenizer(words, add_special_tokens=False)["input_ids"]
        assert all(pieces)
        assert tokenizer.unk_token_id not in {piece for word in pieces for piece in word}
        assert sum(map(len, pieces)) / len(pieces) < 3


def test_another_place_of_the_code_is_no_other_encoder(toy):
    """Where the package lies is not in the reference, so a worker elsewhere finds its own copy."""
    assert toy.location == toy.name == "toy"
    assert toy.fingerprint.startswith("sha256:")


@pytest.mark.slow
def test_transfer_is_carried_by_what_was_learnt_from_raw_text(toy, tmp_path):
    """Other languages need the pretrained weights, and the lowest layers more than the highest."""
    data = cached_toy(tmp_path / "cache")
    targets = tuple(data_ref(data, f"{code}_par", "test", 60) for code in LANGUAGES)
    spec = TrialSpec(
        task="upos",
        encoder=toy,
        source=SOURCE,
        train=data_ref(data, f"{SOURCE}_toy", "train", 200),
        dev=data_ref(data, f"{SOURCE}_toy", "dev", 40),
        ablation="ref",
        hyper=HyperParameters(learning_rate=1e-3, batch_size=16, epochs=4),
        seed=1,
    )

    def others(ablation):
        workspace = Workspace(checkpoints=str(tmp_path / ablation), cache=str(tmp_path / "tokens"))
        result = run_trial(replace(spec, ablation=ablation), Request(targets=targets), workspace)
        found = [
            score.value
            for score in result.scores
            if (score.split, score.metric) == ("test", "accuracy") and score.language != SOURCE
        ]
        assert len(found) == len(LANGUAGES) - 1
        return sum(found) / len(found)

    pretrained = others("ref")
    assert pretrained > others("all") + 0.05  # 14 points with 300 sentences
    assert others("reinit:1-2") < others("reinit:11-12")
