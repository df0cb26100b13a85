"""Subword overlap of a training and a test set, and its correlation with transfer; pure.

Definitions of Wu and Dredze (2019, section 5.3); special pieces are not counted, the unknown piece
is one type, files are taken whole, the source language takes no part (PROTOCOLS 1.10, D-15).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

LEAST = 3
"""Fewer targets have no correlation worth the name."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """What part of a test set training has seen.

    Attributes:
        types: Distinct pieces of the test set that occur in training, as a fraction of all.
        tokens: The same, each piece as often as it occurs in the test set.
    """

    types: float
    tokens: float


def overlap(
    train: Int[np.ndarray, " P"], test: Int[np.ndarray, " Q"], counts: Int[np.ndarray, " Q"]
) -> Overlap:
    """Compare the pieces of two files.

    Args:
        train: Distinct piece ids of the training file, without special pieces.
        test: Distinct piece ids of the test file, from the same tokenizer.
        counts: How often each of these occurs.

    Raises:
        ValueError: the test file has no pieces, so that there is no fraction of them.
    """
    if not len(test):
        raise ValueError("the test set has no subwords: its overlap is undefined.")
    is_shared = np.isin(test, train)
    return Overlap(float(is_shared.mean()), float(counts[is_shared].sum() / counts.sum()))


@dataclass(frozen=True, slots=True)
class Pearson:
    """A linear correlation over target languages.

    Attributes:
        r: In [-1, 1]; NaN where a side is constant or there are fewer than `LEAST` targets.
        p: Two-sided, by Student's t with n - 2 degrees of freedom; NaN with `r`.
        n: Targets.
    """

    r: float
    p: float
    n: int


def pearson(x: Float[np.ndarray, " t"], y: Float[np.ndarray, " t"]) -> Pearson:
    """Correlate overlap with scores; targets that lack one of them are left out."""
    there = ~(np.isnan(x) | np.isnan(y))
    a, b = x[there], y[there]
    if len(a) < LEAST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Pearson(math.nan, math.nan, len(a))
    from scipy import stats  # longer to load than a plan to make; see `analysis.intervals`

    found = stats.pearsonr(a, b)
    return Pearson(float(found.statistic), float(found.pvalue), len(a))
