"""Chance of two kinds at once: which seeds were run, and which sentences were in the test set."""

import numpy as np
from jaxtyping import Float, Int

from analysis.intervals import NONE, Interval, percentiles

_CELLS = 20_000_000  # of a draws x sentences array at a time: bounds memory


def over_seeds_and_sentences(
    right: Float[np.ndarray, "s k"],
    n: Int[np.ndarray, " k"],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = 4_000,
) -> Interval:
    """Percentile interval of an accuracy over seeds and sentences, both drawn with replacement.

    All seeds predict the same sentences, so the two are crossed, not nested: a draw takes seeds
    and, independently, sentences, each sentence with all its words and for all seeds (the
    "pigeonhole" bootstrap: Owen, 2007, Annals of Applied Statistics 1, 386). For a paired
    difference, pass the difference of the counts.

    Its spread counts the noise of single predictions up to three times over, so it errs on the
    wide side; with few seeds it counts the spread of seeds by (s - 1) / s, which errs on the other.
    By simulation, a nominal 95 % covers 94 to 98 % with 10 seeds and 200 sentences (nearly always
    where single predictions are all the noise there is), and 89 % with 5 seeds whose own spread
    rules: then trust Student's interval over seeds more.

    Args:
        right: Words predicted rightly, of each seed in each sentence (or their difference to the
            reference).
        n: Words of each sentence.
        rng: Where chance comes from.
        level: Coverage asked for.
        draws: Resamples.

    Returns:
        Low and high, as fractions of words; NaN below two seeds or two sentences.
    """
    n_seeds, n_sentences = right.shape
    if min(n_seeds, n_sentences) < 2:  # noqa: PLR2004 - one has no spread
        return NONE
    found = np.empty(draws)
    step = max(1, _CELLS // n_sentences)
    for at in range(0, draws, step):
        size = min(step, draws - at)
        seeds = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=size) / n_seeds
        sentences = rng.multinomial(n_sentences, np.full(n_sentences, 1 / n_sentences), size=size)
        hits = ((seeds @ right) * sentences).sum(axis=1)
        found[at : at + size] = hits / (sentences @ n)
    return percentiles(found, level)
