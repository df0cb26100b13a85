"""More than chance? Paired permutation by sign flips, and Holm's correction."""

import itertools

import numpy as np
from jaxtyping import Float

EXACT = 14
"""Up to so many differences all 2^n sign patterns are counted; beyond, they are drawn."""

_TIE = 1e-9
"""Sums this close, relative to the largest, are equal: rounding must not break a tie."""


def sign_flip(
    differences: Float[np.ndarray, " n"], rng: np.random.Generator, *, draws: int = 20_000
) -> float:
    """Two-sided p of "the mean paired difference is 0", by flipping signs.

    Under the null each difference is as likely as its negative (Fisher's randomisation test).
    Exact for up to `EXACT` differences; the least p is then 2^(1-n). Beyond that the drawn
    patterns count the observed one too, so p is never 0 (Phipson and Smyth, 2010).

    Args:
        differences: One a seed or a target; NaN is left out.
        rng: Where chance comes from; untouched when the test is exact.
        draws: Patterns to draw when there are too many to count.

    Returns:
        A fraction in (0, 1]; NaN without differences.
    """
    values = differences[~np.isnan(differences)]
    n = len(values)
    if n == 0:
        return float("nan")
    if n <= EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
        added = 0
    else:
        signs = rng.choice((1.0, -1.0), size=(draws, n))
        added = 1
    observed = abs(float(values.sum()))
    slack = _TIE * float(np.abs(values).sum())
    n_extreme = int((np.abs(signs @ values) >= observed - slack).sum())
    return (n_extreme + added) / (len(signs) + added)


def holm(p: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Holm's step-down adjustment for m tests (Holm, 1979); NaN takes no part and stays.

    Args:
        p: One p a test.

    Returns:
        Adjusted p in the same order: below alpha, the family-wise error is below alpha.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted
