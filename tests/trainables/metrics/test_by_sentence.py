"""What each sentence adds to a score."""

import numpy as np
import pytest

from trainables.metrics.by_sentence import (
    BySentence,
    spans_by_sentence,
    texts_one_by_one,
    words_by_sentence,
)
from trainables.metrics.spans import Spans, compare_spans

START = np.array([0, 3, 3, 5])  # three words, none, two words


def test_words_are_counted_in_their_sentences():
    """Of 3, 0 and 2 words one is wrong in the first and both in the last sentence: 2 of 5."""
    right = np.array([True, False, True, False, False])
    found = words_by_sentence(right, START)
    assert found.items.tolist() == [3, 0, 2]
    assert found.missed.tolist() == [1, 0, 2]
    assert found.value == 2 / 5


def test_words_that_do_not_count_are_neither_items_nor_misses():
    """Without its second and last word, the file has 2 and 1 words; one is missed."""
    right = np.array([True, False, True, False, True])
    counted = np.array([True, False, True, True, False])
    found = words_by_sentence(right, START, counted)
    assert (found.items.tolist(), found.missed.tolist()) == ([2, 0, 1], [0, 0, 1])


def test_spans_missed_and_spurious_give_f1():
    """Gold 0-2 and 3-4, found 0-1, 3-4 and 4-5: one missed, two spurious, F1 2/5."""
    kinds = np.zeros(3, int)
    gold = Spans(np.array([0, 3]), np.array([2, 4]), kinds[:2])
    found = Spans(np.array([0, 3, 4]), np.array([1, 4, 5]), kinds)
    counts = spans_by_sentence(gold, found, START)
    assert counts.items.tolist() == [1, 0, 1]
    assert counts.missed.tolist() == [1, 0, 0]
    assert counts.spurious.tolist() == [1, 0, 1]
    assert counts.value == compare_spans(gold, found).f1 == 2 / 5


def test_nothing_to_find_and_nothing_found_is_no_score():
    """F1 without any span is 0, as in the metric itself."""
    nothing = np.zeros(3, int)
    assert BySentence(nothing, nothing, nothing).value == 0.0


def test_several_answers_to_a_text_are_items_each():
    """Two answers to each of two texts, three right: 3 of 4."""
    found = texts_one_by_one(np.array([[True, True], [False, True]]))
    assert (found.items.tolist(), found.missed.tolist()) == ([2, 2], [0, 1])
    assert found.value == pytest.approx(3 / 4)
