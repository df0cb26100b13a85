"""Mean cosine of a sentence and its translation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int

from trainables.similarity import nulls
from trainables.similarity.base import Level, Pooling, each_pair


def mean_cosine(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n _d"]) -> float:
    """Average `x_i y_i / (|x_i| |y_i|)` over aligned rows.

    Returns:
        In [-1, 1]; 1 when all rows point the same way.

    Raises:
        ValueError: a row is zero, or the sides differ in shape.
    """
    if x.shape != y.shape:
        raise ValueError(f"shapes {x.shape} and {y.shape}: give the same sentences and one space.")
    left, right = _unit_rows(x), _unit_rows(y)
    if left is None or right is None:
        raise ValueError("a row is zero or not finite: its cosine is undefined.")
    return float((left * right).sum(axis=1).mean())


@dataclass(frozen=True, slots=True)
class _Units:
    """One side: rows of length 1, their mean, the products of the columns of their deviations."""

    rows: Float64[np.ndarray, "n d"]
    mean: Float64[np.ndarray, "d"]
    scatter: Float64[np.ndarray, "d d"] | None


@dataclass(frozen=True, slots=True)
class Cosine:
    """The mean cosine of aligned rows.

    Over all pairings its mean is `m_x m_y` for the means of the unit rows, its variance
    `sum_ij (u_i v_j)^2 / (n^2 (n-1)) = <U'U, V'V> / (n^2 (n-1))` for their deviations `U`, `V`
    (Hoeffding 1951, Ann. Math. Stat. 22:558, Theorem 2). A sum of n terms, it is close to normal;
    the 95 % quantile is the normal one.
    """

    name: str = "cosine"

    @property
    def pooling(self) -> Pooling:
        """Mean over all pieces of the words."""
        return "words"

    def options(self) -> dict[str, str | int]:
        """How it was taken (D-22)."""
        return {
            "kernel": "cosine of aligned rows",
            "bandwidth": "none",
            "centring": "none",
            "bias": "none",
            "text": "treebank words",
            "pooling": "mean over pieces",
            "special_pieces": "left out",
            "states_dtype": "float32",
            "dtype": "float64",
            "null": "permutation moments, normal",
        }

    def layer(
        self,
        sides: Sequence[Float[np.ndarray, "n d"]],
        pairs: Sequence[tuple[int, int]],
        shuffles: Sequence[Int[np.ndarray, "n"]],
    ) -> list[Level]:
        """See `base.Measure`; the null costs O(n d^2) a side, O(d^2) a pair."""
        n = len(sides[0])
        levels = [Level(math.nan, n)] * len(pairs)
        for at, x, y in each_pair(pairs, lambda i: _units(sides[i], with_null=bool(shuffles))):
            if x is not None and y is not None:
                levels[at] = _level(x, y)
        return levels


def _units(side: Float[np.ndarray, "n d"], *, with_null: bool) -> _Units | None:
    rows = _unit_rows(side)
    if rows is None:
        return None
    mean = rows.mean(axis=0)
    off = rows - mean
    return _Units(rows, mean, off.T @ off if with_null else None)


def _level(x: _Units, y: _Units) -> Level:
    n = len(x.rows)
    value = float(np.einsum("nd,nd->", x.rows, y.rows)) / n
    if x.scatter is None or y.scatter is None:
        return Level(value, n)
    mean = float((x.mean * y.mean).sum())
    variance = (
        float(np.einsum("ij,ij->", x.scatter, y.scatter)) / (n * n * (n - 1)) if n > 1 else 0.0
    )
    return Level(value, n, mean, nulls.upper_95(nulls.Moments(mean, variance, 0.0)))


def _unit_rows(side: Float[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"] | None:
    rows = side.astype(np.float64)
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    if not (np.isfinite(norms).all() and norms.all()):
        return None
    rows /= norms[:, None]
    return rows


COSINE = Cosine()
