"""Chance of two kinds at once: which seeds were run, and which sentences were in the test set.

All seeds predict the same sentences, so the two are crossed, not nested: a draw takes seeds and,
independently, sentences, each sentence with all its words, for all seeds and ablations alike (the
"pigeonhole" bootstrap: Owen, 2007, Annals of Applied Statistics 1, 386).
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from analysis.intervals import NONE, Interval, percentiles

DRAWS = 1_000
"""Resamples; the ends of a 95 % interval then stray by about a twentieth of its width."""


def over_seeds_and_sentences(
    right: Float[np.ndarray, "s k"],
    n: Int[np.ndarray, " k"],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Interval:
    """Percentile interval of an accuracy over seeds and sentences, both drawn with replacement.

    For a paired difference, pass the difference of the counts. With one seed the interval is over
    sentences alone, and says nothing about how another seed would come out.

    The spread of the draws counts the noise of single predictions up to three times over, so it
    errs on the wide side. What the draw of seeds adds is widened as `widening` says. By simulation
    (200 sentences) a nominal 95 % then covers 98 to 100 % with 2 or 3 seeds, 98 to 100 % with 5 and
    92 to 98 % with 10; unwidened it is 72 % with 2 seeds whose own spread rules. Student's interval
    over seeds, which takes the sentences for given, covers 42 to 96 %.

    Args:
        right: Words predicted rightly, of each seed in each sentence (or their difference to the
            reference).
        n: Words of each sentence.
        rng: Where chance comes from.
        level: Coverage asked for.
        draws: Resamples.

    Returns:
        Low and high, as fractions of words; NaN below two sentences, or without seeds.
    """
    n_seeds, n_sentences = right.shape
    if n_seeds == 0 or n_sentences < 2:  # noqa: PLR2004 - one has no spread
        return NONE
    weights = draw(n_sentences, draws, rng)
    by_seed = (weights @ right.T) / (weights @ n)[:, None]
    return percentiles(over_seeds(by_seed, rng, level=level), level)


def draw(n_units: int, draws: int, rng: np.random.Generator) -> Float[np.ndarray, "draws n"]:
    """How often each unit is drawn, row by row: n of n with replacement.

    In single precision: sums of these with counts are whole numbers below 2^24, hence exact.
    """
    at = rng.integers(0, n_units, size=(draws, n_units))
    at += np.arange(draws)[:, None] * n_units
    times = np.bincount(at.ravel(), minlength=draws * n_units)
    drawn: Float[np.ndarray, "draws n"] = times.astype(np.float32).reshape(draws, n_units)
    return drawn


@lru_cache(maxsize=4)
def sentence_weights(n_sentences: int, draws: int = DRAWS) -> Float[np.ndarray, "draws n"]:
    """The resamples of every test set of so many sentences, the same each time.

    So the sentences of parallel test sets are drawn together, as they must be: a hard sentence is
    hard in translation, too. Where test sets of one size have nothing to do with each other, the
    order of their sentences is as good as random, and drawing them together changes nothing but
    the luck of the draw.
    """
    return draw(n_sentences, draws, np.random.default_rng(n_sentences))


def over_seeds(
    by_seed: Float[np.ndarray, "draws *axes s"], rng: np.random.Generator, *, level: float = 0.95
) -> Float[np.ndarray, "draws *axes"]:
    """Draw seeds for each draw of sentences, the same ones along all axes; with one, take it.

    Args:
        by_seed: One value a draw of sentences and seed.
        rng: Where chance comes from.
        level: Coverage of the interval to come, for `widening`.
    """
    draws, n = by_seed.shape[0], by_seed.shape[-1]
    mean = by_seed.mean(axis=-1)
    if n == 1:
        return np.asarray(mean)
    chosen = draw(n, draws, rng).astype(np.float64) / n
    drawn = np.einsum("d...s,ds->d...", by_seed, chosen)
    return np.asarray(mean + widening(n, level) * (drawn - mean))


def widening(n: int, level: float) -> float:
    """How much wider n drawn units must spread for percentiles to be as wide as Student's.

    Drawn means spread by (n - 1) / n of what they estimate, and few units need Student's quantile
    in place of the normal one: the "expanded percentile interval" of Hesterberg (2015, The American
    Statistician 69, 371).
    """
    tail = (1 + level) / 2
    return float(np.sqrt(n / (n - 1)) * stats.t.ppf(tail, n - 1) / stats.norm.ppf(tail))
