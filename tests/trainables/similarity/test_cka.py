"""CKA by its formula, in Gram space, and by a definition written out here."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainables.similarity import cka
from trainables.similarity.base import compare

SINGLE = {
    "linear-cka": cka.linear_cka,
    "debiased-cka": cka.debiased_cka,
    "rbf-cka": cka.rbf_cka,
    "uncentred-cka": cka.uncentred_cka,
}


def by_definition(x, y, name):
    """`tr(KHLH) / sqrt(tr(KHKH) tr(LHLH))` with every matrix written out, in float64."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(x)

    def kernel(side):
        if name != "rbf-cka":
            return side @ side.T
        distances = ((side[:, None, :] - side[None, :, :]) ** 2).sum(-1)
        return np.exp(-distances / (2 * np.median(distances[distances > 0])))

    k, m = kernel(x), kernel(y)
    if name == "debiased-cka":
        np.fill_diagonal(k, 0)
        np.fill_diagonal(m, 0)

        def hsic(a, b):
            one = np.ones(n)
            sums = (one @ a @ one) * (one @ b @ one) / ((n - 1) * (n - 2))
            return (np.trace(a @ b) + sums - 2 / (n - 2) * (one @ a @ b @ one)) / (n * (n - 3))
    else:
        h = np.eye(n) if name == "uncentred-cka" else np.eye(n) - np.ones((n, n)) / n

        def hsic(a, b):
            return np.trace(a @ h @ b @ h)

    return hsic(k, m) / math.sqrt(hsic(k, k) * hsic(m, m))


def random(rng, n, d):
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


def structured(rng, n, d):
    """A shared part, an outlier dimension and a mean offset, as states of an encoder have."""
    shared = rng.normal(size=(n, d)) * np.geomspace(1, 0.01, d)
    x, y = (shared + 0.3 * rng.normal(size=(n, d)) * np.geomspace(1, 0.1, d) for _ in range(2))
    x[:, 0] += 20
    y[:, -1] *= 15
    return x, y + 3


def repeated(rng, n, d):
    """Some sentences twice, so that some distances are 0."""
    x, y = structured(rng, n, d)
    x[n // 2 :] = x[: n - n // 2]
    y[1] = y[0]
    return x, y


@pytest.mark.parametrize("make", [random, structured, repeated])
@pytest.mark.parametrize(("n", "d"), [(60, 7), (40, 40), (25, 90)])
@pytest.mark.parametrize("name", SINGLE)
def test_single_and_batch_agree_with_the_definition(name, n, d, make):
    """The formula, the batch path and matrices written out give one number, to 1e-9."""
    x, y = (side.astype(np.float32) for side in make(np.random.default_rng(n), n, d))
    expected = by_definition(x, y, name)
    states = {"en": x[None], "ru": y[None]}
    batch = compare(states, ["en"], name, null_draws=0, seed=0)[0].value
    with_null = compare(states, ["en"], name, null_draws=1, seed=0)[0].value
    assert SINGLE[name](x, y) == pytest.approx(expected, abs=1e-9)
    assert batch == pytest.approx(expected, abs=1e-9)
    assert with_null == batch


def test_linear_cka_of_a_case_worked_by_hand():
    """With x = (0, 1, 2) and y = (0, 1, 0): with x_c = (-1, 0, 1), y_c = (-1, 2, -1)/3 it is 0."""
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [0.0]])
    assert cka.linear_cka(x, y) == pytest.approx(0.0, abs=1e-15)
    # One column a side: squared correlation. (0, 1, 2) with (0, 1, 1) correlates at sqrt(3)/2.
    assert cka.linear_cka(x, np.array([[0.0], [1.0], [1.0]])) == pytest.approx(0.75)


def test_uncentred_cka_of_a_case_worked_by_hand():
    """With x = (1, 1), y = (1, 0), |x'y|^2 / (|x'x| |y'y|) = 1 / (2 * 1)."""
    assert cka.uncentred_cka(np.array([[1.0], [1.0]]), np.array([[1.0], [0.0]])) == 0.5


def test_rbf_kernel_of_a_case_worked_by_hand():
    """Points 0, 0, 1, 3: non-zero squared distances 1 1 4 9 9, median 4, so exp(-d/8)."""
    kernel = cka.rbf_kernel(np.array([[0.0], [0.0], [1.0], [3.0]]))
    assert kernel[0] == pytest.approx([1, 1, math.exp(-1 / 8), math.exp(-9 / 8)])
    assert kernel[2] == pytest.approx([math.exp(-1 / 8), math.exp(-1 / 8), 1, math.exp(-0.5)])
    assert (kernel.diagonal() == 1).all()


@pytest.mark.parametrize("name", ["linear-cka", "debiased-cka", "rbf-cka"])
@given(seed=st.integers(0, 2**31), scale=st.floats(0.01, 100), n=st.integers(8, 30))
@settings(deadline=None, max_examples=20)
def test_rotation_scale_and_offset_change_nothing(name, seed, scale, n):
    """Centred forms are 1 for a rotated, scaled and shifted copy, and at most 1 otherwise."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 6)), rng.normal(size=(n, 6))
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    moved = scale * x @ rotation + rng.normal(size=6)
    assert SINGLE[name](x, moved) == pytest.approx(1.0, abs=1e-9)
    assert SINGLE[name](moved, y) == pytest.approx(SINGLE[name](x, y), abs=1e-9)
    lower = -1.0 if name == "debiased-cka" else 0.0
    assert lower <= SINGLE[name](x, y) <= 1.0 + 1e-12


def test_bias_is_what_the_protocol_says():
    """Independent Gaussians, n = 200, d = 768: linear 0.79, RBF 0.86, debiased within 0.02 of 0."""
    x, y = random(np.random.default_rng(0), 200, 768)
    assert cka.linear_cka(x, y) == pytest.approx(0.79, abs=0.01)
    assert cka.rbf_cka(x, y) == pytest.approx(0.86, abs=0.01)
    assert cka.debiased_cka(x, y) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("name", SINGLE)
def test_unequal_rows_are_refused(name):
    """Sides with different numbers of sentences raise an error that says both numbers."""
    with pytest.raises(ValueError, match="5 and 6 rows"):
        SINGLE[name](np.eye(5, 3), np.eye(6, 3))


@pytest.mark.parametrize("name", ["linear-cka", "debiased-cka", "rbf-cka"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
def test_constant_side_is_refused_alone_and_nan_in_a_batch(name, value):
    """A constant side, whatever rounding leaves of it, is an error alone and NaN among others."""
    x = np.random.default_rng(0).normal(size=(1, 9, 4)).astype(np.float32)
    flat = np.full_like(x, value)
    with pytest.raises(ValueError, match="constant"):
        SINGLE[name](x[0], flat[0])
    rows = compare({"a": x, "b": flat, "c": x + 1}, ["a"], name, null_draws=1, seed=0)
    assert math.isnan(rows[0].value)
    assert math.isnan(rows[0].null_mean)
    assert rows[1].value == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", SINGLE)
def test_states_that_are_not_finite_give_nan(name, bad):
    """A layer that overflowed is a row with NaN, without a warning, and spoils no other."""
    x = np.random.default_rng(0).normal(size=(2, 9, 4)).astype(np.float32)
    broken = x.copy()
    broken[0, 3, 2] = bad
    first, second = compare({"a": x, "b": broken}, ["a"], name, null_draws=1, seed=0)
    assert math.isnan(first.value)
    assert second.value == pytest.approx(1.0)


def test_uncentred_is_defined_for_constant_rows_but_not_for_zeros():
    """Equal rows have an uncentred CKA of 1 with each other; a zero side has none."""
    ones = np.ones((1, 7, 3), dtype=np.float32)
    rows = compare({"a": ones, "b": 2 * ones, "c": 0 * ones}, ["a"], "uncentred-cka", 1, 0)
    assert rows[0].value == pytest.approx(1.0)
    assert rows[0].null_95 == pytest.approx(1.0)
    assert math.isnan(rows[1].value)
    with pytest.raises(ValueError, match="zero throughout"):
        cka.uncentred_cka(ones[0], 0 * ones[0])


def test_debiased_needs_four_rows_and_a_self_term():
    """Three rows, or rows all equally far apart, leave the unbiased HSIC undefined."""
    x = np.random.default_rng(0).normal(size=(3, 5))
    with pytest.raises(ValueError, match="3 rows"):
        cka.debiased_cka(x, x)
    corners = np.eye(6)
    with pytest.raises(ValueError, match="self term"):
        cka.debiased_cka(corners, corners)
    for side in (x, corners):
        states = {"a": side[None].astype(np.float32), "b": side[None].astype(np.float32)}
        assert math.isnan(compare(states, ["a"], "debiased-cka", 0, 0)[0].value)
