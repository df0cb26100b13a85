"""More than chance? Paired permutation by sign flips, and Holm's correction."""

from functools import cache

import numpy as np
from jaxtyping import Float

EXACT = 17
"""Up to so many differences all 2^n sign patterns are counted; beyond, they are drawn."""

_CHUNK = 32  # rows at a time: bounds memory

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
    there = differences[~np.isnan(differences)]
    return float(sign_flips(there[None], rng, draws=draws)[0])


def sign_flips(
    rows: Float[np.ndarray, "m n"], rng: np.random.Generator, *, draws: int = 20_000
) -> Float[np.ndarray, " m"]:
    """`sign_flip` of each row, all with the same patterns; a row with NaN has no p."""
    m, n = rows.shape
    if n == 0:
        return np.full(m, np.nan)
    exact = n <= EXACT
    signs = _patterns(n) if exact else rng.choice((1.0, -1.0), size=(draws, n))
    added = 0 if exact else 1
    found = np.full(m, np.nan)
    whole = np.flatnonzero(~np.isnan(rows).any(axis=1))
    for start in range(0, len(whole), _CHUNK):
        at = whole[start : start + _CHUNK]
        least = np.abs(rows[at].sum(axis=1)) - _TIE * np.abs(rows[at]).sum(axis=1)
        n_extreme = (np.abs(signs @ rows[at].T) >= least).sum(axis=0)
        found[at] = (n_extreme + added) / (len(signs) + added)
    return found


@cache
def _patterns(n: int) -> Float[np.ndarray, "patterns n"]:
    """All sign patterns whose first sign is +: the others are their negatives, equally extreme."""
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1) & 1
    return np.concatenate([np.ones((len(bits), 1)), 1.0 - 2.0 * bits], axis=1)


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
