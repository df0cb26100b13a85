"""Intervals for a mean: bootstrap percentiles, and Student's t for a few paired seeds."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from jaxtyping import Float, Int

Interval = tuple[float, float]
_CHUNK = 64  # rows at a time: bounds memory

NONE: Interval = (float("nan"), float("nan"))
"""No interval: too few values say nothing about their spread."""


def bootstrap(
    values: Float[np.ndarray, " n"],
    rng: np.random.Generator,
    *,
    statistic: Callable[[Float[np.ndarray, "draws n"]], Float[np.ndarray, " draws"]] | None = None,
    level: float = 0.95,
    draws: int = 10_000,
) -> Interval:
    """Percentile interval of a statistic over units drawn with replacement.

    Efron (1979). With few units it is too narrow: by simulation, for means of normal values, a
    nominal 95 % covers 75 % of 3, 83 % of 5, 90 % of 10, 92 % of 16 and 94 % of 40.

    Args:
        values: One value a unit (language, seed).
        rng: Where chance comes from.
        statistic: Rows of resampled values -> one number each; the mean by default.
        level: Coverage asked for.
        draws: Resamples.

    Returns:
        Low and high; NaN below two values.
    """
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return NONE
    resampled = values[rng.integers(0, len(values), size=(draws, len(values)))]
    found = resampled.mean(axis=1) if statistic is None else statistic(resampled)
    return percentiles(found, level)


def percentiles(found: Float[np.ndarray, " draws"], level: float) -> Interval:
    """The middle `level` of bootstrap statistics; undefined ones (NaN) are left out."""
    defined = found[~np.isnan(found)]
    if not len(defined):
        return NONE
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_means(
    rows: Float[np.ndarray, "m n"],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = 10_000,
) -> Float[np.ndarray, "m 2"]:
    """`bootstrap` of the mean of each row, all with the same resamples.

    Args:
        rows: One row a mean; a row with NaN has no interval.
        rng: Where chance comes from.
        level: Coverage asked for.
        draws: Resamples.

    Returns:
        Low and high of each row.
    """
    m, n = rows.shape
    if n < 2 or m == 0:  # noqa: PLR2004 - one value has no spread
        return np.full((m, 2), np.nan)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
    found = np.empty((m, 2))
    for at in range(0, m, _CHUNK):
        means = weights @ rows[at : at + _CHUNK].T
        found[at : at + _CHUNK] = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0).T
    return found


def t_intervals(
    mean: Float[np.ndarray, "*axes"],
    sd: Float[np.ndarray, "*axes"],
    n: Int[np.ndarray, "*axes"],
    *,
    level: float = 0.95,
) -> Float[np.ndarray, "*axes 2"]:
    """Student's interval for the mean of a few normal values, such as paired differences.

    Args:
        mean: Their mean.
        sd: Their sample standard deviation (ddof 1).
        n: How many they are.
        level: Coverage asked for.

    Returns:
        Low and high; NaN below two values.
    """
    most = int(np.max(n, initial=0))
    quantiles = np.array([_t_quantile(count, level) for count in range(most + 1)])
    half = quantiles[n] * sd / np.sqrt(np.maximum(n, 1))
    return np.stack([mean - half, mean + half], axis=-1)


def t_interval(mean: float, sd: float, n: int, *, level: float = 0.95) -> Interval:
    """`t_intervals` of one mean."""
    half = _t_quantile(n, level) * sd / math.sqrt(max(n, 1))
    return mean - half, mean + half


@cache
def _t_quantile(n: int, level: float) -> float:
    # Student's quantile without `scipy.stats`, which takes longer to load than a plan to make.
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2)) if n > 1 else float("nan")
