"""Intervals for a mean."""

import numpy as np
import pytest
from scipy import stats

from analysis.intervals import bootstrap, bootstrap_means, percentiles, t_intervals


def paired_t(values):
    """Student's interval of one row of values."""
    sd = values.std(ddof=1) if len(values) > 1 else np.nan
    mean = values.mean() if len(values) else np.nan
    return tuple(t_intervals(np.array(mean), np.array(sd), np.array(len(values))))


def test_paired_t_agrees_with_scipy():
    """The interval of a mean difference is scipy's Student interval."""
    differences = np.array([-0.12, -0.09, -0.14, -0.1])
    expected = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert paired_t(differences) == pytest.approx((expected.low, expected.high))


def test_paired_t_of_two_is_worked_by_hand():
    """Two differences 1 and 3 have mean 2, sd sqrt(2) and 95 % interval 2 -+ 12.706."""
    low, high = paired_t(np.array([1.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-4)


@pytest.mark.parametrize("values", [np.array([]), np.array([0.3])])
def test_one_value_has_no_interval(values):
    """Neither interval exists below two values."""
    assert np.isnan(paired_t(values)).all()
    assert np.isnan(bootstrap(values, np.random.default_rng(0))).all()


def test_bootstrap_agrees_with_scipy():
    """Percentiles of resampled means are scipy's up to Monte-Carlo noise."""
    values = np.random.default_rng(3).normal(size=30)
    ours = bootstrap(values, np.random.default_rng(0))
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_rows_are_bootstrapped_as_one_by_one():
    """Many rows at once have the intervals of `bootstrap`, up to Monte-Carlo noise."""
    rows = np.random.default_rng(4).normal(size=(70, 12))
    rows[3, 0] = np.nan
    found = bootstrap_means(rows, np.random.default_rng(0))
    for i in (0, 69):
        assert found[i] == pytest.approx(bootstrap(rows[i], np.random.default_rng(1)), abs=0.03)
    assert np.isnan(found[3]).all()
    assert np.isnan(bootstrap_means(rows[:, :1], np.random.default_rng(0))).all()


def test_bootstrap_depends_on_the_generator_only():
    """Equal generators give equal intervals."""
    values = np.arange(9.0)
    first, again = (bootstrap(values, np.random.default_rng(7)) for _ in range(2))
    assert first == again


def test_bootstrap_takes_another_statistic():
    """The interval of a statistic that is always 5 is (5, 5)."""
    always = bootstrap(
        np.arange(4.0), np.random.default_rng(0), statistic=lambda x: np.full(len(x), 5.0)
    )
    assert always == (5.0, 5.0)


def test_undefined_resamples_are_left_out():
    """NaN among bootstrap statistics does not reach the percentiles."""
    found = np.array([np.nan, 0.0, 1.0])
    assert percentiles(found, 0.95) == pytest.approx((0.025, 0.975))


def test_paired_t_covers_the_truth_as_often_as_it_says():
    """Of 2,000 intervals from 3 normal differences, 95 % hold the mean (binomial 4 sigma)."""
    rng = np.random.default_rng(11)
    draws = rng.normal(0.5, 2.0, size=(2000, 3))
    covered = np.mean([low <= 0.5 <= high for low, high in map(paired_t, draws)])
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)


def test_bootstrap_covers_many_values_nearly_as_often_as_it_says():
    """Of 300 intervals from 40 normal values, 89 % to 98 % hold the mean."""
    rng = np.random.default_rng(5)
    intervals = [bootstrap(rng.normal(size=40), rng, draws=500) for _ in range(300)]
    covered = np.mean([low <= 0.0 <= high for low, high in intervals])
    assert 0.89 < covered < 0.98


@pytest.mark.parametrize(("n", "expected"), [(3, 0.75), (5, 0.83), (10, 0.90), (40, 0.94)])
def test_bootstrap_of_few_covers_what_its_docstring_says(n, expected):
    """Of 1,000 intervals from n normal values, the documented share holds the mean (4 sigma)."""
    rng = np.random.default_rng(n)
    ends = bootstrap_means(rng.normal(size=(1000, n)), rng, draws=500)
    covered = np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0))
    assert abs(covered - expected) < 4 * np.sqrt(expected * (1 - expected) / 1000)
