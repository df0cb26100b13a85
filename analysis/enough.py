"""How many seeds a difference needs, found by a first look at a few of them; pure.

Adding seeds until an interval happens to be narrow stops too early: where the spread of the first
seeds is small by chance. Student intervals of such a sample hold less than they promise (90 % in
place of 95 for three first seeds and at most twenty). Stein's two stages (1945, Annals of
Mathematical Statistics 16) look once: the spread of the first seeds alone decides how many there
will be, and alone makes the interval, which then holds what it promises, exactly for normal
differences, however many seeds were added and wherever they were cut off. The price is that the
later seeds narrow the interval by their number only, not by a better-known spread.
"""

import math

import numpy as np
from jaxtyping import Bool, Float

from analysis.intervals import NONE, Interval


def seeds_wanted(
    first: Float[np.ndarray, " n"], half: float, most: int, *, level: float = 0.95
) -> int:
    """Least number of seeds with which the two-stage interval reaches at most `half` to each side.

    ``max(n, ceil((t s / half)^2))`` for ``n`` first values of spread ``s``, where ``t`` is the
    quantile of Student with ``n - 1`` degrees of freedom; at most `most`.

    Args:
        first: Paired differences of the first seeds; NaN where a trial failed.
        half: Half the width wanted, in the same unit.
        most: No more seeds than these.
        level: Coverage of the interval.

    Returns:
        The number of seeds, the first ones among them; those alone if they give no spread.
    """
    reach = _reach(first, level)
    if math.isnan(reach):
        return len(first)
    wanted = math.ceil((reach / half) ** 2) if reach < half * most else most
    return max(len(first), min(wanted, most))


def two_stage_interval(
    values: Float[np.ndarray, " n"], is_first: Bool[np.ndarray, " n"], *, level: float = 0.95
) -> Interval:
    """Interval of the mean of differences whose number was decided by the first of them.

    Args:
        values: Paired differences; NaN where a trial failed.
        is_first: Which of them were there before the number was decided.
        level: Coverage.

    Returns:
        Its ends; NaN below two first values.
    """
    reach = _reach(values[is_first], level)
    there = values[~np.isnan(values)]
    if math.isnan(reach):
        return NONE
    middle, half = float(there.mean()), reach / math.sqrt(len(there))
    return middle - half, middle + half


def _reach(first: Float[np.ndarray, " n"], level: float) -> float:
    """Half the width of the interval of a single value; NaN without a spread."""
    there = first[~np.isnan(first)]
    if len(there) < 2:  # noqa: PLR2004 - one value has no spread
        return math.nan
    from scipy.special import stdtrit  # as in `analysis.intervals`

    return float(stdtrit(len(there) - 1, (1 + level) / 2) * there.std(ddof=1))
