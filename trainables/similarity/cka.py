"""Centred kernel alignment in four forms: one pair by the formula, all pairs in Gram space.

Gram space: an n x n matrix a language, made once, then n^2 operations a pair, whatever the size of
the vectors. Everything is float64; columns are centred before they are multiplied.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int

from trainables.similarity import nulls
from trainables.similarity.base import Level, Pooling, each_pair

_ROUNDING = 1e-24
"""Squared size, relative to what was subtracted, below which a rest is rounding: float32 states
that differ anywhere at all stand above it, what centring leaves of equal rows far below."""
_CANCELLED = 1e-13
"""The same for a difference of sums, whose rounding is not squared."""
_FEWEST_DEBIASED = 4


def linear_cka(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]) -> float:
    """Compare two representations of the same `n` sentences.

    With centred columns, `|y'x|^2 / (|x'x| |y'y|)` in the Frobenius norm: Eq. 4 of Kornblith et al.
    (2019, arXiv:1905.00414) with linear kernels. Invariant to rotation and to isotropic scaling of
    either side. Biased: independent Gaussians give about `d / (n + d)`, not 0.

    Args:
        x: One row per sentence, in the source language.
        y: The rows of their translations, in the same order.

    Returns:
        A fraction in [0, 1]; 1 when the two agree up to rotation and scale.

    Raises:
        ValueError: a side is constant, so that the ratio is undefined, or the rows differ in
            number.
    """
    x, y = _centred_pair(x, y)
    return float(np.sum((y.T @ x) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def debiased_cka(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]) -> float:
    """Compare as `linear_cka`, with the unbiased estimator of HSIC in all three places.

    `hsic(K, L) = (tr KL + 1'K1 1'L1 / ((n-1)(n-2)) - 2 1'KL1 / (n-2)) / (n (n-3))` where the
    diagonals of `K = xx'` and `L = yy'` are zero (Song et al. 2012, JMLR 13:1393, Eq. 5).

    Returns:
        At most 1; around 0 for independent sides, so it may be negative.

    Raises:
        ValueError: fewer than 4 rows, a self term is not above 0 (a side is constant or all its
            rows are equally far from each other), or the rows differ in number.
    """
    x, y = _centred_pair(x, y)
    n = len(x)
    if n < _FEWEST_DEBIASED:
        raise ValueError(f"{n} rows: the unbiased HSIC needs at least {_FEWEST_DEBIASED}.")

    def hsic(k: Float64[np.ndarray, "n n"], m: Float64[np.ndarray, "n n"]) -> float:
        sums = k.sum() * m.sum() / ((n - 1) * (n - 2))
        return float((k * m).sum() + sums - 2 / (n - 2) * (k.sum(0) @ m.sum(1))) / (n * (n - 3))

    k, m = (_without_diagonal(side @ side.T) for side in (x, y))
    selves = hsic(k, k), hsic(m, m)
    for own, matrix in zip(selves, (k, m), strict=True):
        if own * n * (n - 3) <= _CANCELLED * float((matrix**2).sum()):
            raise ValueError("a self term of HSIC is not above 0: the debiased CKA is undefined.")
    return hsic(k, m) / math.sqrt(selves[0] * selves[1])


def rbf_cka(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]) -> float:
    """Compare as `linear_cka`, with Gaussian kernels in place of linear ones.

    `tr(KHLH) / sqrt(tr(KHKH) tr(LHLH))`, `H = I - 1/n`, with `rbf_kernel` on each side.

    Returns:
        A fraction in [0, 1], biased like `linear_cka` and more so.

    Raises:
        ValueError: a side is constant, or the rows differ in number.
    """
    x, y = _centred_pair(x, y)
    k, m = _doubly_centred(rbf_kernel(x)), _doubly_centred(rbf_kernel(y))
    return float((k * m).sum() / (np.linalg.norm(k) * np.linalg.norm(m)))


def uncentred_cka(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]) -> float:
    """Compare by `|x'y|^2 / (|x'x| |y'y|)` on columns as they are.

    The formula as "First Align, then Predict" prints it. A mean that all rows share raises it, so
    that it says little about the rows.

    Raises:
        ValueError: a side is zero throughout, or the rows differ in number.
    """
    _check_rows(x, y)
    x, y = x.astype(np.float64), y.astype(np.float64)
    if not (x.any() and y.any()):
        raise ValueError("a side is zero throughout: the ratio is undefined.")
    return float(np.sum((x.T @ y) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def rbf_kernel(x: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n n"]:
    """`exp(-D / (2 s^2))` for squared distances `D`, with `s^2` the median of the non-zero ones.

    `D` comes from products, `|x_i|^2 + |x_j|^2 - 2 x_i x_j`; what that expansion cannot tell from 0
    is 0, so that duplicate sentences do not enter the median; the diagonal is exactly 0.
    """
    products = x @ x.T
    squares = products.diagonal().copy()
    sums = squares[:, None] + squares[None, :]
    products *= -2
    products += sums
    noise = x.shape[1] * np.finfo(np.float64).eps
    products[products <= noise * sums] = 0.0
    products.flat[:: len(x) + 1] = 0.0
    above = products[np.triu_indices(len(x), 1)]
    products *= -0.5 / float(np.median(above[above > 0]))
    kernel: Float64[np.ndarray, "n n"] = np.exp(products, out=products)
    return kernel


@dataclass(frozen=True, slots=True)
class _Gram:
    """One side, scaled so that its kernel matrix has norm 1: `matrix + tilt 1' + 1 tilt' + level`.

    `matrix` is centred; `tilt` (centred) and `level` are the means that an uncentred kernel keeps,
    and 0 in all other forms. `shape` is there when a null is wanted.
    """

    matrix: Float64[np.ndarray, "n n"]
    tilt: Float64[np.ndarray, "n"]
    level: float
    shape: nulls.Invariants | None


@dataclass(frozen=True, slots=True)
class Cka:
    """One form of CKA. Its null is exact in mean and variance (see `nulls`).

    The 95 % quantile is that of the Pearson III distribution with the three moments of all n!
    pairings: within 0.05 standard deviations of 20,000 drawn ones. For `none` the third moment
    leaves out how the centred part and the row means hang together: within 0.3.

    Attributes:
        name: As in the registry.
        kernel: `linear` or `rbf`.
        centring: `double` (H K H, biased), `u` (zero diagonals, unbiased; Szekely and Rizzo 2014,
            whose U-centred inner product is the HSIC of Song et al.), `none`.
    """

    name: str
    kernel: str
    centring: str

    @property
    def pooling(self) -> Pooling:
        """Mean over all pieces of the words."""
        return "words"

    def options(self) -> dict[str, str | int]:
        """How it was taken (D-22)."""
        return {
            "kernel": self.kernel,
            "bandwidth": "none"
            if self.kernel == "linear"
            else "median of non-zero squared distances, own one each side",
            "centring": self.centring,
            "bias": "unbiased" if self.centring == "u" else "biased",
            "text": "treebank words",
            "pooling": "mean over pieces",
            "special_pieces": "left out",
            "states_dtype": "float32",
            "dtype": "float64",
            "null": "permutation moments, Pearson III",
        }

    def layer(
        self,
        sides: Sequence[Float[np.ndarray, "n d"]],
        pairs: Sequence[tuple[int, int]],
        shuffles: Sequence[Int[np.ndarray, "n"]],
    ) -> list[Level]:
        """See `base.Measure`; O(n^2 d) a side, O(n^2) a pair."""
        n = len(sides[0])
        levels = [Level(math.nan, n)] * len(pairs)
        for at, x, y in each_pair(pairs, lambda i: self._gram(sides[i], with_null=bool(shuffles))):
            if x is not None and y is not None:
                levels[at] = _level(x, y)
        return levels

    def _gram(self, side: Float[np.ndarray, "n d"], *, with_null: bool) -> _Gram | None:
        """The side's matrix; None where the measure is undefined on it."""
        if not np.isfinite(side).all() or len(side) < 2:  # noqa: PLR2004 - a pair of rows
            return None
        x, mean = _centre(side)
        tilt, level = np.zeros(len(x)), 0.0
        if self.centring == "none":
            tilt, level = np.einsum("nd,d->n", x, mean), float((mean * mean).sum())
            if not (level > 0 or x.any()):
                return None
        elif not _varies(x, mean):
            return None
        matrix = rbf_kernel(x) if self.kernel == "rbf" else x @ x.T
        if self.centring == "u":
            if len(x) < _FEWEST_DEBIASED:
                return None
            before = _square(_without_diagonal(matrix))
            if _square(_u_centred(matrix)) <= _ROUNDING * before:
                return None
        elif self.kernel == "rbf":
            _doubly_centred(matrix)
        n = len(x)
        norm = math.sqrt(_square(matrix) + 2 * n * float((tilt**2).sum()) + (n * level) ** 2)
        matrix /= norm
        cube = None
        if self.kernel == "linear" and self.centring != "u":
            cube = _cube_trace(x / math.sqrt(norm)) if with_null else None
        shape = nulls.invariants(matrix, cube) if with_null else None
        return _Gram(matrix, tilt / norm, level / norm, shape)


def _level(x: _Gram, y: _Gram) -> Level:
    n = len(x.tilt)
    rest = n * n * x.level * y.level
    value = _product(x.matrix, y.matrix) + 2 * n * float((x.tilt * y.tilt).sum()) + rest
    if x.shape is None or y.shape is None:
        return Level(value, n)
    m = nulls.moments(x.shape, y.shape)
    m = nulls.Moments(m.mean + rest, m.variance, m.third)
    if x.tilt.any() and y.tilt.any() and n >= nulls.FEWEST:
        m = _with_tilt(m, x, y)
    return Level(value, n, m.mean, nulls.upper_95(m))


def _with_tilt(m: nulls.Moments, x: _Gram, y: _Gram) -> nulls.Moments:
    """Add `2n x' P y` of the row means: its own moments, and its covariance with the rest.

    Over permutations, `E (x'Py)^2 = |x|^2 |y|^2 / (n-1)`, `E (x'Py)^3 = n sum(x^3) sum(y^3) /
    ((n-1)(n-2))`, and `E <A, PBP'> x'Py = n (diag(A) x) (diag(B) y) / ((n-1)(n-2))`.
    """
    n = len(x.tilt)
    both = (n - 1) * (n - 2)
    squares = float((x.tilt**2).sum() * (y.tilt**2).sum())
    cubes = float((x.tilt**3).sum() * (y.tilt**3).sum())
    along = float((x.matrix.diagonal() * x.tilt).sum() * (y.matrix.diagonal() * y.tilt).sum())
    variance = m.variance + 4 * n * n * squares / (n - 1) + 4 * n * n * along / both
    return nulls.Moments(m.mean, variance, m.third + 8 * n**4 * cubes / both)


def _centre(
    side: Float[np.ndarray, "n d"],
) -> tuple[Float64[np.ndarray, "n d"], Float64[np.ndarray, "d"]]:
    x = side.astype(np.float64)
    mean = x.mean(axis=0)
    x -= mean
    return x, mean


def _varies(x: Float64[np.ndarray, "n d"], mean: Float64[np.ndarray, "d"]) -> bool:
    return float((x**2).sum()) > _ROUNDING * len(x) * float((mean**2).sum())


def _check_rows(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]) -> None:
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} rows: give the same sentences on both sides.")


def _centred_pair(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "_n e"]
) -> tuple[Float64[np.ndarray, "n d"], Float64[np.ndarray, "_n e"]]:
    _check_rows(x, y)
    (x, x_mean), (y, y_mean) = _centre(x), _centre(y)
    if not (_varies(x, x_mean) and _varies(y, y_mean)):
        raise ValueError("a side is constant (all its rows are equal): the ratio is undefined.")
    return x, y


def _doubly_centred(k: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n n"]:
    """`H k H` in place, by means: n^2 operations, where the products would take n^3."""
    means = k.mean(axis=0)
    k -= means[:, None] + means[None, :] - means.mean()
    return k


def _without_diagonal(k: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n n"]:
    """Zero the diagonal in place (all of it: not `k - diag(k)`, which broadcasts)."""
    k.flat[:: len(k) + 1] = 0.0
    return k


def _u_centred(k: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n n"]:
    """U-centre in place a symmetric matrix with zero diagonal; its rows then sum to 0."""
    n = len(k)
    sums = k.sum(axis=0)
    shares = sums / (n - 2)
    k -= shares[:, None] + shares[None, :] - sums.sum() / ((n - 1) * (n - 2))
    return _without_diagonal(k)


def _cube_trace(x: Float64[np.ndarray, "n d"]) -> float | None:
    """`tr (xx')^3` through the smaller side; None where that is no saving."""
    n, d = x.shape
    if n * d * d + d**3 > n**3:
        return None
    c = x.T @ x
    return _product(c @ c.T, c)


def _product(a: Float64[np.ndarray, "n n"], b: Float64[np.ndarray, "n n"]) -> float:
    """`<a, b>`, summed in one order however many threads BLAS has (its dot product does not)."""
    return float(np.einsum("ij,ij->", a, b))


def _square(a: Float64[np.ndarray, "n n"]) -> float:
    return _product(a, a)


LINEAR = Cka("linear-cka", "linear", "double")
DEBIASED = Cka("debiased-cka", "linear", "u")
RBF = Cka("rbf-cka", "rbf", "double")
UNCENTRED = Cka("uncentred-cka", "linear", "none")
