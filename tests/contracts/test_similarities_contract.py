"""What every similarity measure of the registry promises."""

import json
import math

import numpy as np
import pytest

from trainables.registry import SIMILARITIES, load
from trainables.similarity.base import Compared, compare

N, D = 48, 6
RECORDED = {
    "kernel", "bandwidth", "centring", "bias", "text", "pooling", "special_pieces",
    "states_dtype", "dtype", "null",
}  # fmt: skip


@pytest.fixture(scope="module")
def states():
    """Three languages with a shared part, two layers."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(2, N, D)) + 1
    return {
        language: (shared + noise * rng.normal(size=(2, N, D))).astype(np.float32)
        for language, noise in (("en", 0.1), ("ru", 0.5), ("zh", 1.5))
    }


pytestmark = pytest.mark.parametrize("name", SIMILARITIES)


def test_it_is_what_its_name_says(name):
    """The object carries the name under which it is listed, and a pooling that exists."""
    measure = load("similarity measure", name, SIMILARITIES)
    assert measure.name == name
    assert measure.pooling in {"words", "published"}


def test_options_record_how_it_was_taken(name):
    """Options survive JSON and hold what D-22 asks for."""
    options = load("similarity measure", name, SIMILARITIES).options()
    assert json.loads(json.dumps(options)) == options
    assert set(options) >= RECORDED


def test_rows_are_complete_and_bounded(name, states):
    """One row a pair and layer, with a finite value of at most 1 and a null below it."""
    rows = compare(states, ["en"], name, 5, 0)
    assert [(row.source, row.target, row.layer) for row in rows] == [
        ("en", target, layer) for target in ("ru", "zh") for layer in (0, 1)
    ]
    for row in rows:
        assert isinstance(row, Compared)
        assert -1 <= row.value <= 1
        assert 0 < row.n <= N
        assert row.null_mean < row.null_95 < row.value


def test_closer_languages_score_higher(name, states):
    """The language with less noise is the more similar one."""
    near, far = compare(states, ["en"], name, 0, 0)[::2]
    assert near.value > far.value


def test_no_draws_no_null(name, states):
    """Without draws the null is NaN and the value the same."""
    with_null, without = (compare(states, ["en"], name, draws, 0)[0] for draws in (3, 0))
    assert math.isnan(without.null_mean)
    assert math.isnan(without.null_95)
    assert without.value == with_null.value


def test_itself_is_one_and_sides_may_be_swapped(name, states):
    """A side with itself scores 1, and a pair scores the same from both ends."""
    twins = {"a": states["en"], "b": states["en"]}
    assert compare(twins, ["a"], name, 0, 0)[0].value == pytest.approx(1.0, abs=1e-6)
    there = compare(states, ["ru"], name, 0, 0)
    back = compare(states, ["zh"], name, 0, 0)
    value = next(row.value for row in there if row.target == "zh")
    assert next(row.value for row in back if row.target == "ru") == pytest.approx(value, abs=1e-12)


def test_scale_of_a_side_does_not_matter(name, states):
    """Twice the states, the same value: powers of two are exact in every step."""
    doubled = states | {"ru": 2 * states["ru"]}
    values, scaled = (
        [row.value for row in compare(s, ["en"], name, 0, 0)] for s in (states, doubled)
    )
    assert scaled == pytest.approx(values, abs=1e-9)


def test_states_are_left_as_they_were(name, states):
    """Measuring writes nothing into what it was given."""
    before = {language: side.copy() for language, side in states.items()}
    compare(states, ["en"], name, 3, 0)
    assert all((states[language] == before[language]).all() for language in states)


def test_an_undefined_side_is_nan_and_spoils_no_other(name, states):
    """A language with zero states gives NaN; the others keep their rows."""
    rows = compare(states | {"xx": 0 * states["en"]}, ["en"], name, 3, 0)
    assert all(math.isnan(row.value) for row in rows if row.target == "xx")
    assert [row for row in rows if row.target != "xx"] == compare(states, ["en"], name, 3, 0)
