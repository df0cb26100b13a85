"""How many seeds are enough: for an interval of a given width, or to tell a difference; pure.

Both take the spread of paired differences over seeds as known. Of five seeds it is known to about
a third, of two hardly at all: read the counts as orders of magnitude, and add seeds in steps.
"""

import math
from functools import cache

import numpy as np
from jaxtyping import Float, Int
from scipy import special

MOST = 10_000
"""More seeds than this are not counted out: nobody runs them."""


def seeds_for_width(sd: float, half: float, *, level: float = 0.95) -> float:
    """Least n whose Student interval of the mean is at most `half` wide to each side.

    Args:
        sd: Sample standard deviation of (paired) values over seeds.
        half: Half the width wanted, in the same unit.
        level: Coverage of the interval.

    Returns:
        A whole number, at least 2; infinity beyond `MOST`; NaN without a spread.
    """
    if math.isnan(sd):
        return math.nan
    widths = _widths(level)  # falls with n
    n = int(np.searchsorted(-widths, -half / sd if sd else -np.inf)) + 2 if sd else 2
    return float(n) if n <= MOST else math.inf


@cache
def _widths(level: float) -> Float[np.ndarray, " n"]:
    """Half widths of the intervals of 2, 3 ... values of spread 1."""
    n = np.arange(2, MOST + 1)
    return np.asarray(special.stdtrit(n - 1, (1 + level) / 2) / np.sqrt(n))


def power(
    n: Int[np.ndarray, " m"], effect: float, *, alpha: float = 0.05
) -> Float[np.ndarray, " m"]:
    """Chance that a two-sided paired t test of n seeds finds a difference.

    By the noncentral t distribution with n - 1 degrees of freedom and noncentrality
    ``effect * sqrt(n)`` (Cohen, 1988, chapter 2), both tails counted.

    Args:
        n: Pairs of seeds, at least 2.
        effect: The true difference in standard deviations of the paired differences.
        alpha: Error allowed when there is no difference.
    """
    bound, shift = special.stdtrit(n - 1, 1 - alpha / 2), abs(effect) * np.sqrt(n)
    upper = np.nan_to_num(1 - special.nctdtr(n - 1, shift, bound), nan=1.0)
    return np.asarray(upper + np.nan_to_num(special.nctdtr(n - 1, shift, -bound), nan=0.0))


def seeds_to_tell(
    difference: float, sd: float, *, alpha: float = 0.05, chance: float = 0.8
) -> float:
    """Least n with which a paired t test finds a true difference with the given chance.

    Args:
        difference: The least difference worth finding.
        sd: Sample standard deviation of paired differences over seeds, in the same unit.
        alpha: Error allowed when there is no difference.
        chance: Power asked for.

    Returns:
        A whole number, at least 2; infinity beyond `MOST`; NaN without a spread.
    """
    if math.isnan(sd) or math.isnan(difference):
        return math.nan
    if sd == 0:
        return 2.0 if difference else math.inf
    return _needed(abs(difference) / sd, alpha, chance)


@cache
def _needed(effect: float, alpha: float, chance: float) -> float:
    if effect == 0:
        return math.inf
    # By the normal curve; Student's needs a few more, and the more the fewer they are.
    start = ((special.ndtri(1 - alpha / 2) + special.ndtri(chance)) / effect) ** 2
    if start > MOST:
        return math.inf
    tried = np.arange(max(2, math.floor(start)), math.floor(start) + 12)
    enough = np.flatnonzero(power(tried, effect, alpha=alpha) >= chance)
    return float(tried[enough[0]]) if len(enough) else math.inf
