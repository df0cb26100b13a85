import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from trainables.ablations.base import parameter_hash
from trainables.encoders import pretrained
from trainables.encoders.pretrained import EncoderError, encoder_ref, load_encoder, load_tokenizer


@pytest.fixture
def copied(bert, tmp_path):
    """A folder that a test may spoil."""
    folder = tmp_path / "copied"
    shutil.copytree(bert.location, folder)
    return folder


def rewrite(folder, change):
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors", metadata={"format": "pt"})


def test_weights_are_those_of_the_file(ref):
    """Every parameter equals the tensor of its name in the file, in fp32."""
    encoder = load_encoder(ref)
    stored = load_file(f"{ref.location}/model.safetensors")
    named = dict(encoder.model.named_parameters())
    assert named.keys() <= stored.keys()
    for name, parameter in named.items():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, stored[name])
    assert not encoder.training


def test_no_pooler_is_made_up(bert):
    """A pooler would be random weights that no one asked for."""
    names = [name for name, _ in load_encoder(bert).named_parameters()]
    assert not any("pooler" in name for name in names)


def test_each_call_gives_an_independent_pristine_copy(bert):
    """Spoiling one copy changes neither the next nor an earlier one."""
    first = load_encoder(bert)
    before = parameter_hash(first)
    spoilt = load_encoder(bert)
    with torch.no_grad():
        for parameter in spoilt.parameters():
            parameter.add_(1.0)
    spoilt.requires_grad_(requires_grad=False).train()
    later = load_encoder(bert)
    assert parameter_hash(first) == parameter_hash(later) == before
    assert all(parameter.requires_grad for parameter in later.parameters())
    assert not later.training


def test_loading_draws_no_random_numbers(bert):
    """The global generator stands where it stood, even the first time."""
    pretrained._pristine.cache_clear()
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    load_encoder(bert)
    assert torch.equal(torch.rand(4), expected)


def test_half_precision_files_are_trained_in_fp32(copied):
    """An fp16 checkpoint comes as fp32; it would be fine-tuned in fp16 otherwise, silently."""
    rewrite(copied, lambda weights: {k: v.half() for k, v in weights.items()})
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "dtype": "float16"}))
    encoder = load_encoder(encoder_ref(str(copied)))
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}


def test_dropout_comes_from_the_config(copied):
    """A config that says 0.3 gives blocks that drop 0.3."""
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.3}))
    encoder = load_encoder(encoder_ref(str(copied)))
    rates = {m.p for m in encoder.blocks.modules() if isinstance(m, torch.nn.Dropout)}
    assert 0.3 in rates


def test_a_missing_weight_is_refused_not_made_up(copied):
    """A file without one bias would leave it random: refused, by name."""
    gone = "encoder.layer.2.output.dense.bias"
    rewrite(copied, lambda weights: {k: v for k, v in weights.items() if k != gone})
    with pytest.raises(EncoderError, match=rf"1 weights are missing.*{gone}"):
        load_encoder(encoder_ref(str(copied)))


def test_a_config_with_fewer_layers_than_the_file_is_refused(copied):
    """Otherwise the upper layers would be cut off in silence."""
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(
        EncoderError, match=r"not in the architecture of its config: encoder\.layer\.3"
    ):
        load_encoder(encoder_ref(str(copied)))


def test_a_weight_of_another_shape_is_refused(copied):
    """A vocabulary larger than the table is noticed at loading."""
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "vocab_size": 9999}))
    with pytest.raises(EncoderError, match="word_embeddings"):
        load_encoder(encoder_ref(str(copied)))


def test_heads_poolers_and_old_buffers_may_stay_in_the_file(copied):
    """A masked-language model's file, with prefix, head and position ids, loads whole."""
    expected = parameter_hash(load_encoder(encoder_ref(str(copied))))
    extra = {
        "cls.predictions.bias": torch.zeros(7),
        "bert.pooler.dense.weight": torch.zeros(32, 32),
        "bert.embeddings.position_ids": torch.arange(128)[None],
    }
    rewrite(copied, lambda weights: {f"bert.{k}": v for k, v in weights.items()} | extra)
    assert parameter_hash(load_encoder(encoder_ref(str(copied)))) == expected


def test_a_torn_weight_file_is_an_encoder_error(copied):
    """Half a file says which folder, not a stack trace of the reader."""
    path = copied / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(EncoderError, match="cannot be loaded from"):
        load_encoder(encoder_ref(str(copied)))


def test_a_folder_changed_after_planning_is_refused(copied):
    """The trial id names the old content, so the new one must not be trained under it."""
    planned = encoder_ref(str(copied))
    rewrite(copied, lambda weights: {k: v + 1 for k, v in weights.items()})
    with pytest.raises(EncoderError, match="has changed since the study was planned"):
        load_encoder(planned)


def test_an_unknown_architecture_is_refused(copied):
    """A model type that transformers does not ship gets a message with the name."""
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "model_type": "brand-new"}))
    with pytest.raises(EncoderError, match="brand-new"):
        load_encoder(encoder_ref(str(copied)))


TEXTS = ["cat dogs", "国", "мир", "don't", "dogs.", "قلب", "한", "e\u0301", "a  b", "\u200b"]


@pytest.mark.parametrize("text", TEXTS)
def test_tokenizer_json_is_honoured_as_it_is(ref, text):
    """The pieces are those of the tokenizers library reading the same file."""
    raw = Tokenizer.from_file(f"{ref.location}/tokenizer.json")
    assert load_tokenizer(ref)(text)["input_ids"] == raw.encode(text).ids


def test_a_class_named_in_the_config_does_not_rebuild_the_pipeline(tiny_folders, tmp_path):
    """The class XLMRobertaTokenizer would drop this normaliser; the file has the last word."""
    from tokenizers import normalizers

    folder = tmp_path / "lower"
    shutil.copytree(tiny_folders["xlm-roberta"], folder)
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    raw.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    raw.save(str(folder / "tokenizer.json"))
    about = json.loads((folder / "tokenizer_config.json").read_text())
    about["tokenizer_class"] = "XLMRobertaTokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    tokenizer = load_tokenizer(encoder_ref(str(folder)))
    assert tokenizer.tokenize("CAT") == ["▁cat"]


def test_special_pieces_are_named_without_a_tokenizer_config(ref, tmp_path):
    """Hub folders often leave them to a class; they are read off the other files."""
    folder = tmp_path / "bare"
    shutil.copytree(ref.location, folder)
    (folder / "tokenizer_config.json").write_text("{}")
    expected, found = load_tokenizer(ref), load_tokenizer(encoder_ref(str(folder)))
    names = ("pad_token_id", "cls_token_id", "sep_token_id")
    assert [getattr(found, n) for n in names] == [getattr(expected, n) for n in names]
    if found.unk_token is not None:  # a byte-level vocabulary knows every text
        assert found.unk_token_id == expected.unk_token_id
    assert found.unk_token is not None or "modernbert" in ref.location


def test_a_vocabulary_without_tokenizer_json_gets_its_own_class(copied):
    """An old BERT folder has only vocab.txt; its pieces are the same."""
    tokenizer = load_tokenizer(encoder_ref(str(copied)))
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    expected = tokenizer("cat dogs bird")["input_ids"]
    (copied / "tokenizer.json").unlink()
    (copied / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (copied / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": False})
    )
    old = load_tokenizer(encoder_ref(str(copied)))
    assert old("cat dogs bird")["input_ids"] == expected
    assert (old.pad_token_id, old.unk_token) == (0, "[UNK]")


def test_the_tokenizer_is_loaded_once(bert):
    """A warm call costs nothing: it is the same object."""
    assert load_tokenizer(bert) is load_tokenizer(bert)
