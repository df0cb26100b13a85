"""Intervals over seeds and sentences at once."""

import numpy as np

from analysis.sentences import over_seeds_and_sentences


def made_up(rng, *, seeds=10, sentences=100, by_seed=0.0, by_sentence=0.0):
    """Right words and words: 0.8, moved by what the seed and what the sentence does."""
    n = rng.integers(5, 30, sentences)
    p = 0.8 + by_seed * rng.normal(size=(seeds, 1)) + by_sentence * rng.normal(size=(1, sentences))
    return rng.binomial(n, np.clip(p, 0.02, 0.98)).astype(float), n


def test_interval_covers_the_truth_as_often_as_it_says():
    """Of 120 intervals with seeds and sentences that differ, 88 % or more hold the truth."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(120):
        right, n = made_up(rng, by_seed=0.01, by_sentence=0.06)
        low, high = over_seeds_and_sentences(right, n, rng, draws=200)
        hits += low <= 0.8 <= high
    assert hits / 120 >= 0.88


def test_no_effect_is_rarely_called_one():
    """Paired differences of two models that are equal exclude 0 in at most 12 % of 100 cases."""
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(100):
        n = rng.integers(5, 30, 100)
        p = np.clip(0.8 + 0.06 * rng.normal(size=100), 0.02, 0.98)
        first, second = rng.binomial(n, p, size=(2, 6, 100)).astype(float)
        low, high = over_seeds_and_sentences(first - second, n, rng, draws=200)
        alarms += not low <= 0.0 <= high
    assert alarms <= 12


def test_both_kinds_of_chance_widen_it():
    """Seeds that differ, or sentences that differ, give a wider interval than neither."""
    width = {}
    for name, seed, sentence in (("none", 0.0, 0.0), ("seeds", 0.04, 0.0), ("sents", 0.0, 0.3)):
        right, n = made_up(np.random.default_rng(3), by_seed=seed, by_sentence=sentence)
        low, high = over_seeds_and_sentences(right, n, np.random.default_rng(0), draws=500)
        width[name] = high - low
    assert width["seeds"] > 2 * width["none"] < width["sents"]


def test_equal_everywhere_has_no_width():
    """If every seed gets half of every sentence, both ends are one half."""
    right, n = np.full((3, 4), 2.0), np.full(4, 4)
    assert over_seeds_and_sentences(right, n, np.random.default_rng(0)) == (0.5, 0.5)


def test_what_has_no_spread_has_no_interval():
    """One sentence, or no seed, says nothing; one seed is judged by its sentences alone."""
    rng = np.random.default_rng(0)
    assert np.isnan(over_seeds_and_sentences(np.ones((4, 1)), np.ones(1, int), rng)).all()
    assert np.isnan(over_seeds_and_sentences(np.ones((0, 4)), np.ones(4, int), rng)).all()
    low, high = over_seeds_and_sentences(np.array([[1, 0, 1, 0]]), np.ones(4, int), rng)
    assert 0 <= low < 0.5 < high <= 1
