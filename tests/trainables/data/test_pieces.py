"""Pieces of a file, counted."""

import numpy as np

from trainables.data.example import Example
from trainables.data.pieces import count_pieces, piece_counts
from trainables.data.sentence import Sentence
from trainables.data.subwords import load_corpus


def sentence(*words):
    return Sentence(sent_id="s", text=" ".join(words), words=words)


def named(found, tokenizer):
    names = tokenizer.convert_ids_to_tokens(found.pieces.tolist())
    return dict(zip(names, found.counts.tolist(), strict=True))


def test_words_count_as_often_as_they_occur(wordpiece):
    """Cats twice and sat once: cat 2, ##s 2, sat 1, and no special piece."""
    found = count_pieces([sentence("cats", "sat"), sentence("cats")], wordpiece)
    assert named(found, wordpiece) == {"cat": 2, "##s": 2, "sat": 1}
    assert (np.diff(found.pieces) > 0).all()


def test_unknown_and_empty_words_are_the_unknown_piece(wordpiece):
    """A word of no known piece and one of no piece at all count as the unknown piece (D-15)."""
    found = count_pieces([sentence("zebra", "\u200b")], wordpiece)
    assert named(found, wordpiece) == {"[UNK]": 2}


def test_both_texts_of_a_pair_count(wordpiece):
    """Texts are tokenised as they are, first and second alike."""
    found = count_pieces([Example(text="cats sat", pair="cats"), Example(text="sat")], wordpiece)
    assert named(found, wordpiece) == {"cat": 2, "##s": 2, "sat": 2}


def test_a_treebank_has_the_pieces_that_training_sees(spec, tmp_path):
    """The counts of a file are those of its corpus, which is made another way."""
    found = piece_counts(spec.train, spec.encoder, str(tmp_path))
    corpus = load_corpus(spec.train, spec.encoder, str(tmp_path))
    pieces, counts = np.unique(corpus.pieces, return_counts=True)
    assert np.array_equal(found.pieces, pieces)
    assert np.array_equal(found.counts, counts)
    again = piece_counts(spec.train, spec.encoder, str(tmp_path))
    assert np.array_equal(again.counts, counts)
