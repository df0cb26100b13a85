import numpy as np
import pytest

from trainables.data.example import Example
from trainables.data.texts import Texts, as_texts, build_texts, load_texts
from trainables.encoders.fingerprint import encoder_ref
from trainables.encoders.pretrained import load_encoder, load_tokenizer
from trainables.encoders.tiny import tiny_encoder
from trainables.spec import DataRef


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("bert"), vocabulary=["cat", "dog", "sat"])
    return encoder_ref(str(folder))


def texts(tokenizer, *examples, max_length=16):
    corpus = as_texts(build_texts(examples, tokenizer, max_length), "key", "file")
    return Texts(corpus, tokenizer.pad_token_id)


def tokens(tokenizer, ids):
    return [" ".join(tokenizer.convert_ids_to_tokens(row)) for row in ids.tolist()]


def test_a_pair_is_put_together_as_the_tokenizer_does(bert):
    """[CLS] a [SEP] b [SEP], types 0 and 1, padding at the end; special pieces are not owned."""
    tokenizer = load_tokenizer(bert)
    units = texts(
        tokenizer,
        Example(text="cat sat", pair="dog", label="x"),
        Example(text="dog", label="y"),
    )
    assert units.lengths.tolist() == [6, 3]
    batch = units.collate(np.array([1, 0]))
    assert tokens(tokenizer, batch.input_ids) == [
        "[CLS] dog [SEP] [PAD] [PAD] [PAD]",
        "[CLS] cat sat [SEP] dog [SEP]",
    ]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 0, 0, 0], [1] * 6]
    assert batch.token_types.tolist() == [[0] * 6, [0, 0, 0, 0, 1, 1]]
    assert batch.owned.tolist() == [
        [False, True, False, False, False, False],
        [False, True, True, False, True, False],
    ]
    assert (batch.chosen.tolist(), batch.first.tolist()) == ([1, 0], [0, 1])
    assert (batch.n_words.tolist(), batch.word.tolist(), batch.row.tolist()) == ([0, 0], [], [])


def test_the_longer_text_is_cut_first_and_no_example_is_lost(bert):
    """Of ten and two pieces, seven go from the longer text; the label and the row stay."""
    tokenizer = load_tokenizer(bert)
    units = texts(
        tokenizer,
        Example(text="cat " * 10, pair="dog sat", label="x"),
        Example(text="cat", pair="dog", label="y"),
        max_length=8,
    )
    batch = units.collate(np.array([0]))
    assert tokens(tokenizer, batch.input_ids) == ["[CLS] cat cat cat [SEP] dog sat [SEP]"]
    assert (units.corpus.n_cut, units.corpus.n_sentences) == (1, 2)
    assert units.corpus.labels == ("x", "y")
    assert units.corpus.n_words == 14


def test_a_text_without_pieces_becomes_the_unknown_piece(bert):
    """Zero-width characters leave something to pool, and a row to score."""
    tokenizer = load_tokenizer(bert)
    units = texts(tokenizer, Example(text="\u200b", label="x"))
    assert tokens(tokenizer, units.collate(np.array([0])).input_ids) == ["[CLS] [UNK] [SEP]"]
    assert units.corpus.owned.tolist() == [False, True, False]


@pytest.mark.parametrize("at", [0, 999, 1000, 2000])
def test_examples_keep_their_order_across_chunks(bert, at):
    """Pairs and single texts are tokenised apart, thousand by thousand, and come back in order."""
    tokenizer = load_tokenizer(bert)
    examples = [
        Example(text="cat " * (i % 5 + 1), pair="dog" if i % 3 else "", label=str(i), line=i)
        for i in range(2001)
    ]
    units = texts(tokenizer, *examples)
    expected = 2 + at % 5 + 1 + (2 if at % 3 else 0)
    assert units.lengths[at] == expected
    assert (units.corpus.labels[at], units.corpus.lines[at]) == (str(at), at)


def pinned(path, **more):
    from trainables.data.fingerprints import fingerprint

    return DataRef(
        code="xnli-en",
        language="en",
        split="train",
        location=str(path),
        layout="xnli",
        fingerprint=fingerprint(path),
        **more,
    )


def test_a_torn_cache_is_built_anew_and_lengths_do_not_share_one(bert, tmp_path):
    """What a crash left of a cached file is not read; another max_length is another file."""
    path, cache = tmp_path / "train-en.tsv", tmp_path / "cache"
    path.write_text("cat sat cat sat\tdog\tneutral\ncat\tdog\tentailment\n", encoding="utf-8")
    ref = pinned(path)
    first = load_texts(ref, bert, str(cache), 16)
    (file,) = cache.glob("*.arrow")
    file.write_bytes(file.read_bytes()[:100])
    load_texts.cache_clear()
    again = load_texts(ref, bert, str(cache), 16)
    assert again.pieces.tolist() == first.pieces.tolist()
    assert load_texts(ref, bert, str(cache), 7).n_cut == 1
    assert len(list(cache.glob("*.arrow"))) == 2


def test_a_part_of_a_file_is_data_of_its_own(bert, tmp_path):
    """Skip and limit cut a file into parts that share no example and no cache."""
    path = tmp_path / "dev-en.tsv"
    path.write_text("".join("cat\tdog\tneutral\n" for _ in range(5)), encoding="utf-8")
    parts = [pinned(path, limit=2), pinned(path, skip=2), pinned(path, skip=1, limit=3)]
    found = [load_texts(ref, bert, str(tmp_path / "cache"), 16).lines for ref in parts]
    assert found == [(1, 2), (3, 4, 5), (2, 3, 4)]
    assert [ref.key[-5:] for ref in parts[:2]] == [
        f"{parts[0].fingerprint[-1]}[:2]",
        f"{parts[0].fingerprint[-1]}[2:]",
    ]


@pytest.mark.parametrize(
    ("architecture", "has_types"),
    [
        ("bert", True),
        ("distilbert", False),
        ("xlm-roberta", True),
        ("deberta-v2", False),
        ("modernbert", False),
    ],
)
def test_token_types_reach_only_a_model_that_takes_them(tmp_path, architecture, has_types):
    """Types change the states of a model with an embedding for them, and no other model breaks."""
    import torch

    folder = tiny_encoder(tmp_path / architecture, architecture=architecture, n_layers=2)
    encoder = load_encoder(encoder_ref(str(folder))).eval()
    assert encoder.has_token_types == has_types
    ids = torch.tensor([[1, 5, 6, 2]])
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        plain = encoder(ids, mask).last
        typed = encoder(ids, mask, token_type_ids=torch.tensor([[0, 0, 1, 1]])).last
        zeros = encoder(ids, mask, token_type_ids=torch.zeros_like(ids)).last
    assert torch.equal(plain, zeros)
    assert torch.equal(plain, typed) != has_types
