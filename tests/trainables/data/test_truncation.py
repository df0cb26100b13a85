from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.data.sentence import DataError
from trainables.data.subwords import Corpus
from trainables.data.trees import check_corpus
from trainables.data.truncation import truncated


def corpus(*sentences, heads=None):
    """Sentences as lists of the numbers of pieces of their words; label on the last piece."""
    lengths = np.array([n for sentence in sentences for n in sentence], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(lengths)])
    n_words = [len(sentence) for sentence in sentences]
    flat = [h for of in heads or () for h in of]
    return Corpus(
        key="k",
        location="here.conllu",
        pieces=np.arange(start[-1]),
        word_start=start,
        label_piece=start[1:] - 1,
        sentence_start=np.concatenate([[0], np.cumsum(n_words)]),
        sent_ids=tuple(map(str, range(len(sentences)))),
        orig_ids=("",) * len(sentences),
        texts=("",) * len(sentences),
        lines=tuple(range(1, len(sentences) + 1)),
        upos=tuple(f"T{i}" for i in range(len(lengths))),
        heads=np.array(flat, dtype=np.int64),
        deprels=(),
        tags=(),
        n_unknown=0,
    )


def test_words_beyond_the_window_are_gone():
    """Of words of 2, 1, 3 and 1 pieces a window of 4 holds two; the next sentence is whole."""
    cut = truncated(corpus([2, 1, 3, 1], [1, 2]), 4)
    assert cut.sentence_start.tolist() == [0, 2, 4]
    assert cut.upos == ("T0", "T1", "T4", "T5")
    assert cut.pieces.tolist() == [0, 1, 2, 7, 8, 9]
    assert cut.word_start.tolist() == [0, 2, 3, 4, 6]
    assert cut.label_piece.tolist() == [1, 2, 3, 5]


def test_a_head_that_was_cut_away_is_never_right():
    """Word 1 hangs on word 3, which is gone: its head becomes -1, the root's stays."""
    cut = truncated(corpus([1, 1, 1], heads=[[3, 0, 2]]), 2)
    assert cut.heads.tolist() == [-1, 0]


def test_a_cut_tree_is_judged_as_a_whole():
    """Heads that were cut away are no fault of the file; a cycle in it still is one."""
    check_corpus(truncated(corpus([1, 1, 1], heads=[[3, 0, 2]]), 2))
    with pytest.raises(DataError, match="cycle"):
        check_corpus(truncated(corpus([1, 1, 1, 1], heads=[[0, 1, 4, 3]]), 2))


def test_a_word_longer_than_the_window_stays():
    """A sentence keeps its first word whatever its length."""
    assert truncated(corpus([9, 1]), 4).n_words == 1


def test_what_fits_is_as_it_was():
    """Nothing is cut, and the denominator says so."""
    before = corpus([1, 2], [3])
    after = truncated(before, 3)
    assert after.whole is before
    assert replace(after, whole=None) == before


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_every_sentence_keeps_the_longest_prefix_that_fits(lengths, capacity):
    """One word more would not fit, for every sentence, and each keeps at least one."""
    before = corpus(*lengths)
    cut = truncated(before, capacity)
    kept = np.diff(cut.sentence_start)
    for words, n in zip(lengths, kept, strict=True):
        assert n >= 1
        assert n == 1 or sum(words[:n]) <= capacity
        assert n == len(words) or sum(words[: n + 1]) > capacity
    assert cut.word_start[-1] == len(cut.pieces)
