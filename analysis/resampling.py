"""Intervals of a block's scores, differences and gaps over seeds and sentences at once."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from analysis.blocks import Block
from analysis.counted import TestSet
from analysis.sentences import DRAWS, over_seeds, sentence_weights

_CELLS = 4_000_000  # draws x trials x targets at a time: bounds memory
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """95 % intervals over seeds and sentences; NaN where some trial behind has no counts.

    With one seed they are over sentences alone. X is the mean over the other languages.

    Attributes:
        scores: Of each target.
        delta: Of the differences to the reference; those of the reference are NaN.
        gap: Of the cross-lingual gaps; that of the source is 0.
        scores_x: Of the mean over X.
        delta_x: Of its difference to the reference.
        beyond: Of what X loses beyond the source.
        gap_x: Of the gap to the mean over X.
    """

    scores: Float[np.ndarray, "a t 2"]
    delta: Float[np.ndarray, "a t 2"]
    gap: Float[np.ndarray, "a t 2"]
    scores_x: Float[np.ndarray, "a 2"]
    delta_x: Float[np.ndarray, "a 2"]
    beyond: Float[np.ndarray, "a 2"]
    gap_x: Float[np.ndarray, "a 2"]


def spread(
    block: Block,
    sets: tuple[TestSet | None, ...],
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
) -> Spread:
    """Draw seeds and sentences again and again, the same ones for all ablations and targets.

    A number has an interval only if every trial behind it has counts.

    Args:
        block: Scores.
        sets: Counts of each of its test sets.
        rng: Where the chance of seeds comes from.
        draws: Resamples.
    """
    n_ablations, n_targets, n_seeds = block.values.shape
    there = np.array([_there(counted, n_ablations, n_seeds) for counted in sets]).swapaxes(0, 1)
    wanted = _quantities(block, block.values[None])[0]
    counted = ~np.isnan(_quantities(block, np.where(there, block.values, np.nan)[None])[0])
    is_whole = ((~np.isnan(wanted)) == counted).all(axis=-1) & counted.any(axis=-1)
    step = max(1, _CELLS // max(1, block.values.size))
    found = np.full((draws, *is_whole.shape), np.nan)
    streams = rng.spawn(-(-draws // step))
    for at, stream in zip(range(0, draws, step), streams, strict=True):
        part = slice(at, min(at + step, draws))
        values = np.full((part.stop - at, *block.values.shape), np.nan)
        for t, one in enumerate(sets):
            if one is not None:
                weights = sentence_weights(one.right.shape[1], draws)[part]
                values[:, :, t] = one.values(weights).reshape(-1, n_ablations, n_seeds)
        found[part] = _seeds_drawn(block, values, counted, is_whole, stream)
    ends = np.moveaxis(_ends(found), 0, -1)
    return _as_spread(ends, n_targets)


def _there(counted: TestSet | None, *shape: int) -> Bool[np.ndarray, "a s"]:
    return np.zeros(shape, bool) if counted is None else counted.there.reshape(shape)


def _quantities(
    block: Block, values: Float[np.ndarray, "draws a t s"]
) -> Float[np.ndarray, "draws a q s"]:
    """All that `Spread` tells of, seed by seed, in its order: t, t and t of them, then four."""
    draws, n_ablations, _, n_seeds = values.shape
    nothing = np.full((draws, n_ablations, 1, n_seeds), np.nan)
    reference, source, others = block.lineup.reference, block.source, list(block.others)
    delta, gap = np.full((2, *values.shape), np.nan)
    if reference is not None:
        delta = values - values[:, reference : reference + 1]
        delta[:, reference] = np.nan
    if source is not None:
        gap = values[:, :, source : source + 1] - values
    x, delta_x, gap_x = (
        part[:, :, others].mean(axis=2, keepdims=True) if others else nothing
        for part in (values, delta, gap)
    )
    own = nothing if source is None else delta[:, :, source : source + 1]
    return np.concatenate([values, delta, gap, x, delta_x, delta_x - own, gap_x], axis=2)


def _seeds_drawn(
    block: Block,
    values: Float[np.ndarray, "draws a t s"],
    counted: Bool[np.ndarray, "a q s"],
    is_whole: Bool[np.ndarray, "a q"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "draws a q"]:
    """All quantities with seeds drawn among those that each of them has.

    Drawing is linear, so scores are drawn and then subtracted; quantities of the same seeds share
    the draw, and mostly all have the same.
    """
    found = np.full((len(values), *is_whole.shape), np.nan)
    patterns = np.unique(counted[is_whole], axis=0)
    for pattern, stream in zip(patterns, rng.spawn(len(patterns)), strict=True):
        drawn = over_seeds(values[..., pattern], block.values[..., pattern], stream, level=_LEVEL)
        chosen = is_whole & (counted == pattern).all(axis=-1)
        found[:, chosen] = _quantities(block, drawn[..., None])[..., 0][:, chosen]
    return found


def _ends(found: Float[np.ndarray, "draws a q"]) -> Float[np.ndarray, "2 a q"]:
    """Percentiles of each quantity; of one whose draws are not all defined, none."""
    tail = (1 - _LEVEL) / 2
    ends: Float[np.ndarray, "2 a q"] = np.quantile(found, [tail, 1 - tail], axis=0)
    return ends


def _as_spread(ends: Float[np.ndarray, "a q 2"], t: int) -> Spread:
    x, delta_x, beyond, gap_x = np.moveaxis(ends[:, 3 * t :], 1, 0)
    return Spread(
        ends[:, :t], ends[:, t : 2 * t], ends[:, 2 * t : 3 * t], x, delta_x, beyond, gap_x
    )
