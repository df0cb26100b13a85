"""Spearman's rho, its permutation p, its interval, its sign."""

import itertools

import numpy as np
import pytest
from scipy import stats

from analysis.correlation import (
    EXACT,
    LEAST,
    bootstrap_rho,
    correlate,
    permutation_p,
    permutation_ps,
    ranks,
    spearman,
)


def test_ties_share_their_average_rank():
    """3, 1, 3, 2 have ranks 3.5, 1, 3.5, 2."""
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


@pytest.mark.parametrize("n", [4, 9, 16])
@pytest.mark.parametrize("has_ties", [False, True])
def test_rho_agrees_with_scipy(n, has_ties):
    """With and without ties, rho is scipy's."""
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    if has_ties:
        x, y = np.round(x), np.round(y)
    assert float(spearman(x, y)) == pytest.approx(stats.spearmanr(x, y).statistic)


def test_rho_of_a_constant_or_of_two_values_is_undefined():
    """A side without order, or fewer than three values, give NaN."""
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)))
    assert np.isnan(spearman(np.arange(LEAST - 1.0), np.arange(LEAST - 1.0)))


def test_exact_p_is_that_of_counting_all_orders():
    """Five values with ties: p is the share of the 120 orders that are as extreme."""
    x, y = np.array([1.0, 2.0, 2.0, 4.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0, 5.0])
    observed = abs(stats.spearmanr(x, y).statistic)
    extreme = [
        abs(stats.spearmanr(x, y[list(order)]).statistic) >= observed - 1e-9
        for order in itertools.permutations(range(5))
    ]
    p = permutation_p(x[None], y)
    assert p.tolist() == [np.mean(extreme)]


def test_drawn_p_is_near_the_t_approximation():
    """At 16 targets and rho near 0.5, p is near 2 sided t with 14 degrees of freedom."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=16)
    y = 0.5 * x + rng.normal(size=16)
    assert len(x) > EXACT
    p = permutation_p(x[None], y)[0]
    assert p == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.01)


def test_published_values_are_not_significant():
    """A rho of 0.47 over 17 and of 0.43 over 16 targets has p of 0.057 and 0.096."""
    for n, rho, expected in ((17, 0.47, 0.057), (16, 0.43, 0.096)):
        t = rho * np.sqrt((n - 2) / (1 - rho**2))
        assert 2 * stats.t.sf(t, n - 2) == pytest.approx(expected, abs=0.001)
        y = _with_rho(n, rho)
        p = permutation_p(np.arange(float(n))[None], y)[0]
        assert p == pytest.approx(expected, abs=0.01)


def _with_rho(n, rho):
    """Some order of n values whose rho with 0..n-1 is within 0.005 of `rho`."""
    rng = np.random.default_rng(0)
    while True:
        y = rng.permutation(n) * 1.0
        if abs(stats.spearmanr(np.arange(n), y).statistic - rho) < 0.005:
            return y


def test_several_layers_are_tested_as_one_by_one():
    """In the exact range, p of a batch equals p of each of its rows."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(4, 7)), rng.normal(size=7)
    batch = permutation_p(x, y)
    assert batch.tolist() == [permutation_p(row[None], y)[0] for row in x]


def test_sign_similarity_that_helps_has_a_negative_rho_with_the_gap():
    """Where nearer languages lose less, rho(gap) is -1 and rho(score) +1 (D-23)."""
    found = correlate(
        np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.9, 0.8, 0.7, 0.6]), np.random.default_rng(0)
    )
    assert (found.rho_gap, found.rho_score, found.n) == pytest.approx((-1.0, 1.0, 4))
    assert found.p == pytest.approx(2 / 24)


def test_interval_is_of_the_displayed_rho():
    """The interval holds rho(score), not rho(gap), and lies within [-1, 1]."""
    rng = np.random.default_rng(1)
    similarity = rng.normal(size=12)
    found = correlate(-similarity + rng.normal(scale=0.7, size=12), similarity, rng)
    assert -1 <= found.interval[0] <= found.rho_score <= found.interval[1] <= 1
    assert found.interval[0] > 0


def test_bootstrap_interval_agrees_with_scipy():
    """The interval of rho over targets is scipy's paired percentile bootstrap."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=17)
    y = x + rng.normal(size=17)
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b: stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=600,
        rng=np.random.default_rng(1),
    ).confidence_interval
    ours = bootstrap_rho(x, y, np.random.default_rng(0))
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.06)


def test_a_target_without_a_number_is_left_out_and_counted():
    """NaN in either side lowers n by one."""
    gap = np.array([0.1, np.nan, 0.3, 0.4, 0.5])
    similarity = np.array([0.9, 0.8, np.nan, 0.6, 0.5])
    assert correlate(gap, similarity, np.random.default_rng(0)).n == 3


def test_spread_over_seeds_is_of_each_seeds_own_rho():
    """Two seeds with rho(score) 1 and 0.5 have mean 0.75 and sd 0.3536."""
    gaps = np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2]])
    near = np.array([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]])
    found = correlate(
        gaps.mean(axis=0),
        near[0],
        np.random.default_rng(0),
        gap_by_seed=gaps,
        similarity_by_seed=near,
    )
    assert (found.seed_mean, found.seed_sd, found.n_seeds) == pytest.approx((0.75, 0.125**0.5, 2))


def test_permutation_p_is_uniform_under_the_null():
    """Unrelated values get p <= 0.05 in at most 5 % of 600 exact tests (binomial 4 sigma)."""
    rng = np.random.default_rng(9)
    y = np.arange(6.0)
    p = permutation_p(rng.normal(size=(600, 6)), y)
    alarms = np.mean(p <= 0.05)
    assert 0.01 < alarms < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 600)


def test_drawn_orders_keep_the_error_of_the_null():
    """All tests of 12 values share their drawn orders; of 600 null ones 5 % reach p <= 0.05."""
    rng = np.random.default_rng(10)
    p = np.array(
        [permutation_p(rng.normal(size=(1, 12)), rng.normal(size=12))[0] for _ in range(600)]
    )
    assert abs(np.mean(p <= 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 600)
    assert abs(np.mean(p <= 0.5) - 0.5) < 4 * np.sqrt(0.25 / 600)


def test_corrected_p_is_that_of_the_largest_rho():
    """Two layers of four values, by counting: each rho against the larger one of every order."""
    x = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0]])
    y = np.array([1.0, 2.0, 4.0, 3.0])
    rhos = np.array(
        [
            [abs(stats.spearmanr(row, order).statistic) for row in x]
            for order in itertools.permutations(y)
        ]
    )
    observed = [abs(stats.spearmanr(row, y).statistic) for row in x]
    expected = [np.mean(rhos.max(axis=1) >= rho - 1e-9) for rho in observed]
    plain, corrected = permutation_ps(x, y)
    assert corrected.tolist() == pytest.approx(expected)
    assert (corrected >= plain).all()


def test_corrected_p_keeps_the_family_wise_error():
    """Of 300 null studies with six layers, at most 5 % find some layer (binomial 4 sigma)."""
    rng = np.random.default_rng(12)
    alarms = np.mean(
        [
            permutation_ps(rng.normal(size=(6, 6)), rng.normal(size=6))[1].min() <= 0.05
            for _ in range(300)
        ]
    )
    assert alarms < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_interval_of_rho_covers_the_truth_nearly_as_often_as_it_says():
    """Of 200 intervals from 16 targets of rho 0.79, 85 % or more hold it."""
    rng = np.random.default_rng(14)
    r = 0.8
    truth = 6 / np.pi * np.arcsin(r / 2)
    hits = 0
    for _ in range(200):
        x = rng.normal(size=16)
        y = r * x + np.sqrt(1 - r**2) * rng.normal(size=16)
        low, high = bootstrap_rho(x, y, rng, draws=200)
        hits += low <= truth <= high
    assert hits / 200 >= 0.85
