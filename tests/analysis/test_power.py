"""How many seeds are enough."""

import math

import numpy as np
import pytest
from scipy import stats

from analysis.power import power, seeds_for_width, seeds_to_tell


def test_width_is_that_of_students_interval():
    """With the count it gives, scipy's half width is at most that asked for; with one less not."""
    n = int(seeds_for_width(0.01, 0.005))
    halves = [stats.t.interval(0.95, m - 1, scale=0.01 / math.sqrt(m))[1] for m in (n - 1, n)]
    assert halves[1] <= 0.005 < halves[0]


@pytest.mark.parametrize(("effect", "expected"), [(0.5, 34), (1.0, 10)])
def test_counts_are_those_of_the_textbook(effect, expected):
    """A paired t test with 80 % power at 5 % takes 34 pairs for d = 0.5 and 10 for d = 1."""
    assert seeds_to_tell(effect, 1.0) == expected


def test_power_is_what_a_simulation_finds():
    """Of 4,000 tests of 6 pairs and d = 1.2, as many are significant as promised (4 sigma)."""
    values = np.random.default_rng(0).normal(1.2, 1.0, size=(4000, 6))
    found = np.mean(stats.ttest_1samp(values, 0.0, axis=1).pvalue <= 0.05)
    promised = float(power(np.array([6]), 1.2)[0])
    assert abs(found - promised) < 4 * math.sqrt(promised * (1 - promised) / 4000)


def test_no_difference_is_found_as_often_as_alpha():
    """The power for a difference of 0 is alpha."""
    assert power(np.array([2, 5, 50]), 0.0) == pytest.approx(0.05)


def test_edges_have_plain_answers():
    """No spread: two seeds; no difference: no count is enough; no sd: no answer."""
    assert seeds_for_width(0.0, 0.005) == seeds_to_tell(0.1, 0.0) == 2
    assert seeds_to_tell(0.0, 1.0) == seeds_for_width(1.0, 1e-6) == math.inf
    assert math.isnan(seeds_for_width(math.nan, 1.0))
    assert math.isnan(seeds_to_tell(1.0, math.nan))
