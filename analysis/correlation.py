"""Similarity against transfer: Spearman's rho, its permutation p and its interval; pure.

Sign (D-23): rho(gap, similarity) is negative where alignment helps, as the gap is a loss. The
papers print rho(score, similarity), which is the same number with the sign turned.
"""

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from jaxtyping import Float, Int

from analysis.intervals import NONE, Interval, percentiles

EXACT = 9
"""Up to so many targets all n! orders are counted; beyond, they are drawn."""

LEAST = 3
"""Fewer targets have no rank correlation worth the name."""

_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Correlation:
    """How similarity goes with transfer, over target languages.

    Attributes:
        rho_gap: Spearman's rho of gap and similarity, as stored; NaN where undefined.
        p: Two-sided permutation p.
        interval: 95 % bootstrap interval of `rho_score`, over targets.
        n: Targets.
        seed_mean: Mean over seeds of each seed's own `rho_score`; NaN without.
        seed_sd: Their sample standard deviation; NaN below two seeds.
        n_seeds: Seeds with a rho of their own.
    """

    rho_gap: float
    p: float
    interval: Interval
    n: int
    seed_mean: float = math.nan
    seed_sd: float = math.nan
    n_seeds: int = 0

    @property
    def rho_score(self) -> float:
        """Spearman's rho of transfer score and similarity, as the papers print it."""
        return -self.rho_gap


def ranks(values: Float[np.ndarray, "*rows n"]) -> Float[np.ndarray, "*rows n"]:
    """Ranks from 1; ties share their average. A row with NaN has none.

    As `scipy.stats.rankdata` gives them, whose package takes as long to load as four figures to
    draw.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    differs = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones((*values.shape[:-1], 1), bool)
    at = np.arange(values.shape[-1])
    first = np.maximum.accumulate(np.where(np.concatenate([edge, differs], -1), at, 0), axis=-1)
    ends = np.where(np.concatenate([differs, edge], -1), at, at.size)[..., ::-1]
    last = np.minimum.accumulate(ends, axis=-1)[..., ::-1]
    found = np.empty(values.shape)
    np.put_along_axis(found, order, (first + last) / 2 + 1, axis=-1)
    found[np.isnan(values).any(axis=-1)] = np.nan
    return found


def spearman(
    x: Float[np.ndarray, "*rows n"], y: Float[np.ndarray, "*rows n"]
) -> Float[np.ndarray, "*rows"]:
    """Spearman's rank correlation along the last axis.

    Returns:
        In [-1, 1]; NaN where a side is constant or has fewer than `LEAST` values.
    """
    if x.shape[-1] < LEAST:
        return np.full(np.broadcast_shapes(x.shape, y.shape)[:-1], np.nan)
    a, b = _standard(x), _standard(y)
    return np.asarray(np.clip((a * b).sum(axis=-1), -1.0, 1.0))


def _standard(values: Float[np.ndarray, "*rows n"]) -> Float[np.ndarray, "*rows n"]:
    """Centred ranks of length 1; NaN where they are constant."""
    centred = ranks(values) - (values.shape[-1] + 1) / 2
    length = np.sqrt((centred**2).sum(axis=-1, keepdims=True))
    return np.where(length > 0, centred / np.where(length > 0, length, 1.0), np.nan)


def permutation_p(
    x: Float[np.ndarray, "m n"], y: Float[np.ndarray, " n"], *, draws: int = 20_000
) -> Float[np.ndarray, " m"]:
    """Two-sided p of "x and y are unrelated", for several x against the same y.

    Exact for up to `EXACT` values. Beyond, orders are drawn, the same ones for every test of so
    many values; they count the observed one too, so p is never 0 (Phipson and Smyth, 2010).

    Args:
        x: One row a test (layer).
        y: What is permuted.
        draws: Orders to draw when there are too many to count.

    Returns:
        Fractions in (0, 1]; NaN where rho is undefined.
    """
    return np.asarray(permutation_ps(x, y, draws=draws)[0])


def permutation_ps(
    x: Float[np.ndarray, "m n"], y: Float[np.ndarray, " n"], *, draws: int = 20_000
) -> Float[np.ndarray, "2 m"]:
    """`permutation_p`, and the same corrected for looking at several x.

    The correction is Westfall and Young's (1993, single step): each rho is held against the
    largest of all x under the same order. Layers are much alike, and Holm's correction, which
    knows nothing of that, would cost far more power for the same family-wise error.

    Returns:
        Plain p, and corrected p, which is at least as large; NaN where rho is undefined.
    """
    n = len(y)
    if n < LEAST:
        return np.full((2, len(x)), np.nan)
    a, b = _standard(x), _standard(y)
    orders, added = (_orders(n), 0) if n <= EXACT else (_drawn_orders(n, draws), 1)
    observed = np.abs(a @ b)[:, None]
    by_chance = np.abs(a @ b[orders].T)
    largest = np.fmax.reduce(by_chance, axis=0)
    n_extreme = [np.count_nonzero(side >= observed - _TIE, axis=1) for side in (by_chance, largest)]
    p = (np.stack(n_extreme) + added) / (len(orders) + added)
    observed = observed[:, 0]
    return np.asarray(np.where(np.isnan(observed), np.nan, p))


@cache
def _orders(n: int) -> Int[np.ndarray, "orders n"]:
    """All orders of `n` things; 3 MB for 9."""
    found = np.zeros((1, 1), np.int8)
    for last in range(1, n):
        # Every order of fewer things, with the new one put at each place in turn.
        found = np.concatenate([np.insert(found, at, last, axis=1) for at in range(last + 1)])
    return found


@lru_cache(maxsize=4)
def _drawn_orders(n: int, draws: int) -> Int[np.ndarray, "draws n"]:
    """Random orders of `n` things, always the same: drawing them takes longer than a test."""
    kind = np.int8 if n <= np.iinfo(np.int8).max else np.int32
    one = np.arange(n, dtype=kind)
    return np.random.default_rng([n, draws]).permuted(np.tile(one, (draws, 1)), axis=1)


def bootstrap_rho(
    x: Float[np.ndarray, " n"],
    y: Float[np.ndarray, " n"],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = 2_000,
) -> Interval:
    """Percentile interval of Spearman's rho over targets drawn with replacement.

    Resamples in which a side is constant are left out.
    """
    if len(x) <= LEAST:
        return NONE
    drawn = rng.integers(0, len(x), size=(draws, len(x)))
    return percentiles(spearman(x[drawn], y[drawn]), level)


def correlate(
    gap: Float[np.ndarray, " n"],
    similarity: Float[np.ndarray, " n"],
    rng: np.random.Generator,
    *,
    gap_by_seed: Float[np.ndarray, "s n"] | None = None,
    similarity_by_seed: Float[np.ndarray, "s n"] | None = None,
) -> Correlation:
    """Correlate the gaps of some targets with their similarity to the source.

    Seed means first, then one rho (D-24); targets without a gap or a similarity are left out.

    Args:
        gap: Cross-lingual gap of each target, mean over seeds.
        similarity: Similarity to the source, mean over seeds (and over layers).
        rng: Where chance comes from.
        gap_by_seed: The gaps of each seed, for the spread of rho over seeds.
        similarity_by_seed: The similarities of each seed.
    """
    there = ~(np.isnan(gap) | np.isnan(similarity))
    x, y = similarity[there], gap[there]
    rho = float(spearman(x, y))
    spread = _seed_spread(gap_by_seed, similarity_by_seed, there)
    if math.isnan(rho):
        return Correlation(rho, math.nan, NONE, int(there.sum()), *spread)
    low, high = bootstrap_rho(x, y, rng)
    p = float(permutation_p(x[None], y)[0])
    return Correlation(rho, p, (-high, -low), len(x), *spread)


def _seed_spread(
    gap: Float[np.ndarray, "s n"] | None,
    similarity: Float[np.ndarray, "s n"] | None,
    there: np.ndarray,
) -> tuple[float, float, int]:
    """Mean, sd and count of the rho(score, similarity) of single seeds."""
    if gap is None or similarity is None:
        return math.nan, math.nan, 0
    pairs = [(s[there], g[there]) for g, s in zip(gap, similarity, strict=True)]
    whole = [(x, y) for x, y in pairs if not (np.isnan(x).any() or np.isnan(y).any())]
    found = np.array([-float(spearman(x, y)) for x, y in whole])
    found = found[~np.isnan(found)]
    if not len(found):
        return math.nan, math.nan, 0
    sd = float(found.std(ddof=1)) if len(found) > 1 else math.nan
    return float(found.mean()), sd, len(found)
