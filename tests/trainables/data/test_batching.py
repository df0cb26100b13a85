import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.data.batching import (
    collate,
    evaluation_batches,
    forward_parts,
    make_windows,
    padding_ratio,
    training_batches,
)
from trainables.data.subwords import Corpus, Vocabulary

SPECIAL = Vocabulary(prefix=(101,), suffix=(102,), pad=0, unknown=1, lead="")


def corpus_of(sentences):
    """A corpus from the piece counts of its words; pieces are numbered from 1000."""
    lengths = [n for sentence in sentences for n in sentence]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Corpus(
        key="k",
        location="f",
        pieces=np.arange(1000, 1000 + starts[-1]),
        word_start=starts,
        label_piece=starts[:-1].copy(),
        sentence_start=np.concatenate([[0], np.cumsum([len(s) for s in sentences])]),
        sent_ids=tuple(str(i) for i in range(len(sentences))),
        orig_ids=("",) * len(sentences),
        texts=("",) * len(sentences),
        lines=tuple(range(len(sentences))),
        upos=("X",) * len(lengths),
        heads=np.zeros(0, dtype=np.int64),
        deprels=(),
        tags=(),
        n_unknown=0,
    )


SENTENCES = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=40), min_size=1, max_size=8)


@given(SENTENCES, st.integers(9, 30), st.integers(0, 8))
def test_every_word_is_owned_by_exactly_one_window(sentences, capacity, overlap):
    """Windows lose no word and own none twice, whatever their size."""
    corpus = corpus_of(sentences)
    windows = make_windows(corpus, capacity=capacity, overlap=overlap)
    owned = np.concatenate(
        [np.arange(own, end) for own, end in zip(windows.own, windows.end, strict=True)]
    )
    assert owned.tolist() == list(range(corpus.n_words))
    assert windows.n_pieces.max() <= capacity


@given(SENTENCES, st.integers(9, 30), st.integers(0, 8))
def test_context_is_the_end_of_the_same_sentence(sentences, capacity, overlap):
    """Left context never crosses a sentence and never exceeds the overlap."""
    corpus = corpus_of(sentences)
    windows = make_windows(corpus, capacity=capacity, overlap=overlap)
    context = corpus.word_start[windows.own] - corpus.word_start[windows.start]
    assert (context <= overlap).all()
    assert (windows.start >= corpus.sentence_start[windows.sentence]).all()


@given(SENTENCES, st.integers(9, 30), st.integers(0, 8))
def test_a_batch_holds_each_owned_word_at_its_label_piece(sentences, capacity, overlap):
    """Row and column of a word in a batch lead to the piece that carries its label."""
    corpus = corpus_of(sentences)
    windows = make_windows(corpus, capacity=capacity, overlap=overlap)
    batch = collate(corpus, windows, np.arange(len(windows)), SPECIAL)
    found = batch.input_ids[batch.row, batch.column]
    assert found.tolist() == corpus.pieces[corpus.label_piece[batch.word]].tolist()
    # Each piece is pooled once: owned positions hold every piece of the corpus exactly once.
    assert sorted(batch.input_ids[batch.owned].tolist()) == corpus.pieces.tolist()


def test_a_window_by_hand():
    """Words of 3, 3, 3 pieces, windows of 7, context of 3: two windows, the second sees word 2."""
    windows = make_windows(corpus_of([[3, 3, 3]]), capacity=7, overlap=3)
    assert (windows.start.tolist(), windows.own.tolist(), windows.end.tolist()) == (
        [0, 1],
        [0, 2],
        [2, 3],
    )
    batch = collate(corpus_of([[3, 3, 3]]), windows, np.array([0, 1]), SPECIAL)
    assert batch.input_ids.tolist() == [
        [101, 1000, 1001, 1002, 1003, 1004, 1005, 102],
        [101, 1003, 1004, 1005, 1006, 1007, 1008, 102],
    ]
    assert batch.owned[1].tolist() == [False] * 4 + [True] * 3 + [False]
    assert (batch.row.tolist(), batch.column.tolist()) == ([0, 0, 1], [1, 4, 4])


def test_a_window_that_cannot_hold_a_word_is_refused():
    """A context as long as the window leaves no room for progress."""
    with pytest.raises(ValueError, match="overlap"):
        make_windows(corpus_of([[1]]), capacity=4, overlap=4)


@pytest.mark.parametrize("how", ["bucketed", "random"])
def test_an_epoch_draws_every_window_once(how):
    """No window is drawn twice or left out, and the order changes with the epoch only."""
    lengths = np.random.default_rng(0).integers(1, 60, 1000)

    def epoch(number):
        return training_batches(lengths, batch_size=16, seed=3, epoch=number, how=how)

    assert sorted(np.concatenate(epoch(0)).tolist()) == list(range(1000))
    assert [b.tolist() for b in epoch(0)] == [b.tolist() for b in epoch(0)]
    assert [b.tolist() for b in epoch(0)] != [b.tolist() for b in epoch(1)]
    assert len(epoch(0)) == 63


def test_bucketed_batches_carry_little_padding():
    """Sorting inside mega-batches brings padding below 1.1x, random batches stay above 1.5x."""
    lengths = np.random.default_rng(1).gamma(2, 10, 5000).astype(int) + 3
    ratio = {
        how: padding_ratio(
            lengths, training_batches(lengths, batch_size=16, seed=0, epoch=0, how=how)
        )
        for how in ("bucketed", "random")
    }
    assert ratio["bucketed"] < 1.1
    assert ratio["random"] > 1.5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 200))
def test_evaluation_batches_keep_to_their_budget(lengths, budget):
    """Every window is seen once, and only a window that alone exceeds the budget breaks it."""
    lengths = np.array(lengths)
    batches = evaluation_batches(lengths, budget=budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(b) == 1 or lengths[b].max() * len(b) <= budget for b in batches)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(0, 100))
def test_evaluation_batches_end_before_they_are_mostly_padding(lengths, waste):
    """No batch pads more than it may, and none could have taken the next window as well."""
    lengths = np.array(lengths)
    batches = evaluation_batches(lengths, budget=10_000, waste=waste)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    padding = [int((lengths[b].max() - lengths[b]).sum()) for b in batches]
    assert all(wasted <= waste for wasted in padding)
    for batch, wasted, after in zip(batches, padding, batches[1:], strict=False):
        assert wasted + lengths[batch].max() - lengths[after].max() > waste


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 40), st.integers(1, 200)
)
def test_a_batch_goes_forward_in_parts_that_fit(lengths, size, budget):
    """Parts hold every sentence once, in order, within size and budget unless one is alone."""
    parts = forward_parts(np.array(lengths), size=size, budget=budget)
    assert np.concatenate(parts).tolist() == list(range(len(lengths)))
    for part in parts:
        assert len(part) <= size
        padded = len(part) * max(lengths[place] for place in part)
        assert len(part) == 1 or padded <= budget


def test_a_batch_within_the_budget_goes_forward_whole():
    """Sixteen sentences of up to 256 pieces are one part; one of 257 makes them two."""
    whole = forward_parts(np.full(16, 256), size=16, budget=4096)
    assert [len(part) for part in whole] == [16]
    cut = forward_parts(np.array([256] * 15 + [257]), size=16, budget=4096)
    assert [len(part) for part in cut] == [15, 1]
