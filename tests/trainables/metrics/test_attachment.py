import numpy as np
import pytest

from trainables.metrics.attachment import Attachment, count_attached

GOLD = np.array([[2, 0], [0, 1], [2, 2], [2, 3], [4, -1]])
FOUND = np.array([[2, 0], [0, 2], [1, 2], [2, 3], [4, 1]])


def test_heads_and_labels_are_counted_word_by_word():
    """Five words: four heads right, two of them with the right relation."""
    counts = count_attached(*GOLD.T, *FOUND.T)
    assert counts == Attachment(n_heads=4, n_both=2, n=5)
    assert (counts.uas, counts.las) == (0.8, 0.4)


def test_words_that_do_not_count_leave_the_denominator():
    """Without the second and third word: three heads and two relations of three."""
    counted = np.array([True, False, False, True, True])
    assert count_attached(*GOLD.T, *FOUND.T, counted) == Attachment(3, 2, 3)


def test_counts_add_up_over_parts():
    """Counting two halves and adding is counting the whole."""
    parts = [count_attached(*GOLD[part].T, *FOUND[part].T) for part in (slice(2), slice(2, 5))]
    assert parts[0] + parts[1] == count_attached(*GOLD.T, *FOUND.T)


def test_no_words_have_no_score():
    """The ratio of nothing is refused, not called 0 or 1."""
    with pytest.raises(ZeroDivisionError):
        _ = Attachment(0, 0, 0).las
