"""Intervals for a mean: bootstrap percentiles, and Student's t for a few paired seeds."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import stats

Interval = tuple[float, float]
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

    Efron (1979). With few units it is too narrow: for means of 5 to 10 it covers about 85 to 90 %.

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


def paired_t(differences: Float[np.ndarray, " n"], *, level: float = 0.95) -> Interval:
    """Student's interval for the mean of paired differences, right for few normal ones.

    Args:
        differences: One a seed.
        level: Coverage asked for.

    Returns:
        Low and high; NaN below two differences.
    """
    n = len(differences)
    if n < 2:  # noqa: PLR2004 - one difference has no spread
        return NONE
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * float(differences.std(ddof=1)) / n**0.5
    mean = float(differences.mean())
    return mean - half, mean + half
