"""Which rows come out of a comparison, and what they depend on."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from trainables.registry import SIMILARITIES, UnknownName
from trainables.similarity.base import compare, each_pair


def made_up(languages, layers=2, n=20, d=5, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(layers, n, d))
    return {
        language: (shared + rng.normal(size=(layers, n, d))).astype(np.float32)
        for language in languages
    }


def test_each_pivot_meets_every_other_language_once():
    """Pairs of two pivots come once, a language with itself never, layers in order."""
    rows = compare(made_up(["ru", "ar", "en", "fr"]), ["ru", "en"], "linear-cka", 0, 0)
    assert [(row.source, row.target) for row in rows[::2]] == [
        ("ru", "ar"),
        ("ru", "en"),
        ("ru", "fr"),
        ("en", "ar"),
        ("en", "fr"),
    ]
    assert [row.layer for row in rows] == [0, 1] * 5
    assert {row.n for row in rows} == {20}


def test_all_pairs_when_all_are_pivots():
    """Four languages that are all pivots give six pairs."""
    rows = compare(made_up("abcd", layers=1), "abcd", "cosine", 0, 0)
    assert len({frozenset((row.source, row.target)) for row in rows}) == len(rows) == 6


@pytest.mark.parametrize("measure", SIMILARITIES)
def test_rows_depend_on_their_two_languages_alone(measure):
    """Neither the order of languages, nor a repeated pivot, nor other languages change a row."""
    states = made_up(["en", "ru", "ar"], seed=1)
    whole = compare(states, ["en"], measure, 2, 5)
    turned = compare(dict(reversed(states.items())), ["en", "en"], measure, 2, 5)
    alone = compare({key: states[key] for key in ("ru", "en")}, ["en"], measure, 2, 5)
    assert turned == whole
    assert [row for row in whole if row.target == "ru"] == alone


@pytest.mark.parametrize("measure", SIMILARITIES)
def test_layers_side_by_side_change_nothing(measure):
    """Two threads give the rows of one."""
    states = made_up("abc", layers=5, n=33)
    one = compare(states, ["a"], measure, 2, 0)
    assert compare(states, ["a"], measure, 2, 0, threads=2) == one


@pytest.mark.slow
def test_same_bits_whatever_blas_is_told():
    """Processes that give BLAS one and two threads print the same numbers, to the last bit."""
    script = (
        "import numpy as np; from trainables.similarity.base import compare\n"
        "rng = np.random.default_rng(0)\n"
        "s = {k: rng.normal(size=(1, 317, 129)).astype(np.float32) for k in 'abc'}\n"
        "for m in ('linear-cka', 'debiased-cka', 'rbf-cka', 'cosine'):\n"
        "    print([(r.value.hex(), r.null_95.hex()) for r in compare(s, 'ab', m, 1, 0)])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(printed) == 1
    assert printed.pop().count("0x") == 4 * 3 * 2


def test_nothing_to_compare():
    """A language alone gives no rows."""
    assert compare(made_up(["en"]), ["en"], "linear-cka", 20, 0) == []


def test_unknown_names_are_refused_with_what_there_is():
    """A measure or pivot that is not there is named, beside those that are."""
    states = made_up(["en", "ru"])
    with pytest.raises(UnknownName, match="Did you mean 'linear-cka'"):
        compare(states, ["en"], "linear_cka", 0, 0)
    with pytest.raises(ValueError, match=r"no states of pivot 'fr'.*en, ru"):
        compare(states, ["fr"], "linear-cka", 0, 0)


def test_languages_of_different_length_are_refused():
    """Unequal numbers of sentences cannot be parallel: an error that lists the shapes."""
    states = made_up(["en", "ru"])
    states["ru"] = states["ru"][:, :-1]
    with pytest.raises(ValueError, match=r"en \(2, 20, 5\), ru \(2, 19, 5\)"):
        compare(states, ["en"], "linear-cka", 0, 0)


@pytest.mark.parametrize("n", [2, 3, 5, 6])
@pytest.mark.parametrize("measure", SIMILARITIES)
def test_few_sentences_give_numbers_or_nan(measure, n):
    """Too few sentences for a measure or its null are NaN, never an error or a warning."""
    row = compare(made_up("ab", layers=1, n=n), ["a"], measure, 2, 0)[0]
    assert row.n == n
    assert math.isnan(row.value) or -1 <= row.value <= 1 + 1e-12


def test_sides_are_built_once_and_only_pivots_are_kept():
    """With one pivot of four languages, two sides are held at a time."""
    built, alive = [], set()

    class Side:
        def __init__(self, i):
            built.append(i)
            alive.add(i)
            self.i = i

        def __del__(self):
            alive.discard(self.i)

    held = []
    for _, pivot, other in each_pair([(1, 0), (1, 2), (1, 3)], Side):
        assert pivot.i == 1
        held.append(len(alive))
        del pivot, other
    assert sorted(built) == [0, 1, 2, 3]
    assert max(held) <= 3  # the one before goes when the next one is there
