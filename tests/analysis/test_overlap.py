"""Subword overlap and its correlation with transfer."""

import numpy as np
import pytest
from scipy import stats

from analysis.overlap import overlap, pearson


def test_overlap_is_worked_by_hand():
    """Of the types 1 2 3 4, training has 1 and 2: one half; of 8 tokens they are 5."""
    found = overlap(np.array([1, 2, 9]), np.array([1, 2, 3, 4]), np.array([3, 2, 2, 1]))
    assert (found.types, found.tokens) == (0.5, 5 / 8)


def test_a_file_overlaps_with_itself():
    """Every type and every token of the training file was seen."""
    found = overlap(np.array([5, 7]), np.array([5, 7]), np.array([1, 2]))
    assert found.types == found.tokens == 1.0


def test_an_empty_test_set_is_refused():
    """There is no fraction of nothing."""
    with pytest.raises(ValueError, match="no subwords"):
        overlap(np.array([1]), np.array([], int), np.array([], int))


def test_correlation_agrees_with_scipy_and_leaves_holes_out():
    """R and p of the targets that have both numbers are scipy's."""
    x, y = np.random.default_rng(0).normal(size=(2, 12))
    found = pearson(np.append(x, np.nan), np.append(y, 1.0))
    expected = stats.pearsonr(x, y)
    assert (found.r, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.n == 12


def test_a_constant_side_has_no_correlation():
    """Nothing varies, so nothing goes together."""
    assert np.isnan(pearson(np.ones(5), np.arange(5.0)).r)
