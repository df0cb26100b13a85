import numpy as np
import pytest

from trainables.data.sentence import Sentence
from trainables.data.subwords import WORD_LIMIT, as_corpus, build, split_words, vocabulary


def sentence(*words, **more):
    return Sentence(sent_id="s", text=" ".join(words), words=words, **more)


def test_special_pieces_are_read_off_the_tokenizer(wordpiece, unigram):
    """What stands around a sentence comes from the tokenizer itself, not from a model's name."""
    bert, xlmr = vocabulary(wordpiece), vocabulary(unigram)
    assert (bert.prefix, bert.suffix, bert.pad, bert.unknown) == ((2,), (3,), 0, 1)
    assert (xlmr.prefix, xlmr.suffix, xlmr.pad, xlmr.unknown) == ((0,), (2,), 1, 3)


def test_the_label_sits_on_the_first_piece_with_a_character(unigram):
    """A bare word mark never carries a label: the trap that ruins transfer to Chinese."""
    (pieces, label), (plain, at) = split_words(["猫の", "the"], unigram)
    assert [unigram.convert_ids_to_tokens(p) for p in pieces] == ["▁", "猫", "の"]
    assert label == 1
    assert (unigram.convert_ids_to_tokens(plain), at) == (["▁the"], 0)


ZERO_WIDTH = ["\u200b", "\u200c", "\u200d", "\u00ad", "\ufeff", "\u3000", "\x00"]


@pytest.mark.parametrize("word", ZERO_WIDTH, ids=ascii)
def test_a_word_without_pieces_becomes_the_unknown_piece(wordpiece, word):
    """Zero-width words keep their place in the sentence."""
    assert split_words([word], wordpiece) == [([1], 0)]


def test_a_very_long_word_is_cut_and_kept(wordpiece):
    """A word of 500 pieces is one word still."""
    ((pieces, label),) = split_words([".".join("a" * 300)], wordpiece)
    assert len(pieces) == WORD_LIMIT
    assert label == 0


def test_every_word_owns_its_own_pieces(wordpiece):
    """Flat arrays give back each word's pieces, sentence by sentence."""
    table = build(
        [sentence("cats", "sat", upos=("NOUN", "VERB")), sentence("zebra", upos=("NOUN",))],
        wordpiece,
    )
    corpus = as_corpus(table, "key", "file")
    words = np.split(corpus.pieces, corpus.word_start[1:-1])
    assert [wordpiece.convert_ids_to_tokens(w.tolist()) for w in words] == [
        ["cat", "##s"],
        ["sat"],
        ["[UNK]"],
    ]
    assert corpus.sentence_start.tolist() == [0, 2, 3]
    assert corpus.label_piece.tolist() == [0, 2, 3]
    assert corpus.upos == ("NOUN", "VERB", "NOUN")
    assert (corpus.n_sentences, corpus.n_words, corpus.n_unknown) == (2, 3, 1)
