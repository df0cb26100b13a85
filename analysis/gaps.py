"""Cross-lingual gap, difference to the reference, mean over targets: defined here, once; pure.

Arrays are ablation x target x seed, fractions, NaN where there is no number. A mean over targets
is NaN unless every target is there: a mean over another set of languages is another quantity.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, slots=True)
class Paired:
    """Differences to the reference, seed by seed.

    Attributes:
        by_seed: Ablated - reference, of the same seed; NaN where one of them lacks.
        mean: Mean over the seeds that both have; NaN when they share none.
        sd: Sample standard deviation (ddof 1) of the differences; NaN below two pairs.
        n: Pairs.
    """

    by_seed: Float[np.ndarray, "*axes s"]
    mean: Float[np.ndarray, "*axes"]
    sd: Float[np.ndarray, "*axes"]
    n: Int[np.ndarray, "*axes"]

    def __getitem__(self, at: tuple[slice, int]) -> "Paired":
        """The values at these positions of the axes before seeds."""
        return Paired(self.by_seed[at], self.mean[at], self.sd[at], self.n[at])


def cross_lingual_gap(
    scores: Float[np.ndarray, "a t *s"], source: int
) -> Float[np.ndarray, "a t *s"]:
    """Score on the source less score on each target, of the same model; positive is a loss.

    Args:
        scores: Of one family of test sets.
        source: Position of the source's own test set; its gap is 0.
    """
    gap: Float[np.ndarray, "a t *s"] = scores[:, source : source + 1] - scores
    return gap


def over_seeds(values: Float[np.ndarray, "*axes s"]) -> Paired:
    """Mean, sd and count over the seeds that are there."""
    there = ~np.isnan(values)
    n = there.sum(axis=-1)
    mean = _divide(np.where(there, values, 0.0).sum(axis=-1), n)
    squares = np.where(there, (values - mean[..., None]) ** 2, 0.0).sum(axis=-1)
    return Paired(values, mean, np.sqrt(_divide(squares, n - 1)), n)


def deltas(scores: Float[np.ndarray, "a *axes s"], reference: int) -> Paired:
    """Ablated less reference, paired by seed; seeds that one of them lacks are left out."""
    return over_seeds(scores - scores[reference : reference + 1])


def over_targets(
    values: Float[np.ndarray, "a t *s"], among: tuple[int, ...]
) -> Float[np.ndarray, "a *s"]:
    """Unweighted mean over declared targets (SRC-X); NaN unless all of them are there.

    Args:
        values: Seed means, or values by seed.
        among: Positions of the targets.
    """
    if not among:
        return np.full((values.shape[0], *values.shape[2:]), np.nan)
    return np.asarray(values[:, list(among)].mean(axis=1))


def lacking(
    values: Float[np.ndarray, "a t"], among: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """For each ablation, the declared targets that it has no number for."""
    return tuple(tuple(target for target in among if np.isnan(row[target])) for row in values)


def _divide(
    total: Float[np.ndarray, "*axes"], n: Int[np.ndarray, "*axes"]
) -> Float[np.ndarray, "*axes"]:
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
