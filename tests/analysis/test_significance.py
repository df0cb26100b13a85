"""Sign flips and Holm's correction."""

import numpy as np
import pytest
from scipy import stats

from analysis.significance import EXACT, holm, sign_flip, sign_flips


def test_three_equal_signs_give_a_quarter():
    """With three differences of one sign, 2 of 8 sign patterns are as extreme: p = 0.25."""
    assert sign_flip(np.array([0.1, 0.2, 0.3]), np.random.default_rng(0)) == 0.25


def test_ties_count_as_extreme():
    """Differences 1, 1, -1: all but no pattern reach |sum| 1, so p = 1."""
    assert sign_flip(np.array([0.1, 0.1, -0.1]), np.random.default_rng(0)) == 1.0


def test_exact_p_agrees_with_scipy():
    """Nine differences: the p of scipy's exact paired permutation test."""
    differences = np.random.default_rng(2).normal(0.4, 1.0, size=9)
    expected = stats.permutation_test(
        (differences, np.zeros(9)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    ).pvalue
    assert sign_flip(differences, np.random.default_rng(0)) == pytest.approx(expected)


def test_drawn_p_is_near_the_normal_approximation():
    """Beyond the exact size, p is near that of z = sum / sqrt(sum of squares)."""
    differences = np.random.default_rng(4).normal(0.3, 1.0, size=40)
    assert len(differences) > EXACT
    z = differences.sum() / np.sqrt((differences**2).sum())
    found = sign_flip(differences, np.random.default_rng(0))
    assert found == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.02)


def test_drawn_p_is_never_zero():
    """However strong the effect, the observed pattern counts."""
    p = sign_flip(np.full(30, 1.0), np.random.default_rng(0), draws=100)
    assert 0 < p <= 2 / 101


def test_rows_are_tested_as_one_by_one():
    """A batch gives each row's own exact p; a row with NaN has none."""
    rows = np.random.default_rng(3).normal(0.5, 1.0, size=(5, 10))
    rows[2, 4] = np.nan
    rng = np.random.default_rng(0)
    found = sign_flips(rows, rng)
    assert np.isnan(found[2])
    assert [found[i] for i in (0, 1, 3, 4)] == [sign_flip(rows[i], rng) for i in (0, 1, 3, 4)]


def test_missing_differences_are_left_out():
    """NaN does not count as a difference; without any there is no p."""
    rng = np.random.default_rng(0)
    assert sign_flip(np.array([0.1, np.nan, 0.2, 0.3]), rng) == 0.25
    assert np.isnan(sign_flip(np.array([np.nan]), rng))


def test_false_alarms_are_as_rare_as_promised():
    """Under the null, p <= 0.05 comes up in at most 5 % of 2,000 tests (binomial 4 sigma)."""
    rng = np.random.default_rng(8)
    alarms = np.mean([sign_flip(rng.normal(size=8), rng) <= 0.05 for _ in range(2000)])
    assert 0.01 < alarms < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)


def test_holm_is_worked_by_hand():
    """0.01, 0.04, 0.03 of three tests become 0.03, 0.06, 0.06."""
    assert holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])


def test_holm_leaves_out_what_was_not_tested():
    """NaN stays NaN and does not count among the tests; nothing exceeds 1."""
    adjusted = holm(np.array([0.9, np.nan, 0.02]))
    assert adjusted[[0, 2]] == pytest.approx([0.9, 0.04])
    assert np.isnan(adjusted[1])


def test_holm_keeps_order_and_never_lowers_p():
    """Adjusted p are at least p, at most Bonferroni's, and sorted as p are."""
    p = np.random.default_rng(1).random(12)
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, p * 12)).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


def test_holm_keeps_the_error_of_a_whole_table():
    """Of 1,000 tables of six ablations that do nothing, about 5 % name one at 5 %; plain p 15 %.

    The six share their reference, as those of a study do, so their tests are not independent. The
    bound is 5 % and three standard errors.
    """
    rng = np.random.default_rng(11)
    corrected, plain = 0, 0
    for _ in range(1_000):
        reference, ablated = rng.normal(size=10), rng.normal(size=(6, 10))
        p = sign_flips(ablated - reference, rng)
        corrected += bool((holm(p) <= 0.05).any())
        plain += bool((p <= 0.05).any())
    assert corrected <= 50 + 3 * np.sqrt(1_000 * 0.05 * 0.95)
    assert plain >= 150


def test_holm_finds_what_is_there():
    """With one ablation that costs two standard deviations, Holm names it in most tables."""
    rng = np.random.default_rng(12)
    found = 0
    for _ in range(100):
        differences = rng.normal(size=(6, 10)) - np.array([2.0, 0, 0, 0, 0, 0])[:, None]
        found += bool(holm(sign_flips(differences, rng))[0] <= 0.05)
    assert found >= 80
