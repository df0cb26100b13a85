import pytest

from trainables.encoders.fingerprint import folder_fingerprint
from trainables.encoders.pretrained import encoder_ref, load_encoder, load_tokenizer
from trainables.encoders.tiny import tiny_encoder

MULTISCRIPT = "Cat dogs 12 мир कमल 人 かな 한국 قلب"


def test_equal_seeds_give_equal_bytes(tmp_path):
    """The fingerprint depends on the seed and not on the folder or global random state."""
    import torch

    first = tiny_encoder(tmp_path / "a", seed=3)
    torch.rand(5)
    assert folder_fingerprint(tiny_encoder(tmp_path / "b", seed=3)) == folder_fingerprint(first)
    assert folder_fingerprint(tiny_encoder(tmp_path / "c", seed=4)) != folder_fingerprint(first)


def test_sizes_are_as_asked(tmp_path):
    """Layers and width reach the config and the weights."""
    ref = encoder_ref(str(tiny_encoder(tmp_path / "six", n_layers=6, hidden=16)))
    encoder = load_encoder(ref)
    assert (ref.n_layers, encoder.n_layers, encoder.hidden_size) == (6, 6, 16)


def test_several_scripts_are_covered(ref):
    """Words of seven scripts have pieces other than the unknown one."""
    tokenizer = load_tokenizer(ref)
    ids = tokenizer(MULTISCRIPT, add_special_tokens=False)["input_ids"]
    assert ids
    known = [i for i in ids if i != tokenizer.unk_token_id]
    assert len(known) / len(ids) > 0.8


def test_given_words_are_single_pieces(ref):
    """The vocabulary's words are not split (after a space, for byte-level pieces)."""
    tokenizer = load_tokenizer(ref)
    for word in ("cat", "dogs"):
        text = f" {word}" if "modernbert" in ref.location else word
        assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) == 1


def test_unigram_pieces_of_other_scripts_follow_a_bare_mark(tiny_folders):
    """As in XLM-R, a Chinese word begins with a lone word-start mark, an English one does not."""
    tokenizer = load_tokenizer(encoder_ref(str(tiny_folders["xlm-roberta"])))
    assert tokenizer.tokenize("人") == ["▁", "人"]
    assert tokenizer.tokenize("cat") == ["▁cat"]
    assert tokenizer.tokenize("bird")[0] == "▁b"


def test_unknown_architectures_and_odd_widths_are_refused(tmp_path):
    """Both say what would do."""
    with pytest.raises(ValueError, match=r"'elmo'. Known: bert, distilbert"):
        tiny_encoder(tmp_path, architecture="elmo")
    with pytest.raises(ValueError, match="multiple of 16"):
        tiny_encoder(tmp_path, hidden=30)
