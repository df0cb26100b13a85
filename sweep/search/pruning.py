"""Whether a trial of a search goes on after an epoch; pure. Scores: higher is better.

Both rules look at the trials of one search only, so that a hard cell is not stopped for an easy
one's sake. A trial is never stopped for want of others to compare it with.
"""

import math
from collections.abc import Iterable, Mapping
from statistics import median

Curve = Mapping[int, float]
"""Epoch -> score on source dev."""

FEWEST = 3
"""Trials that the median rule wants to have seen at an epoch before it stops another."""


def rungs(epochs: int, grace: int, reduction: int) -> tuple[int, ...]:
    """Epochs after which asynchronous successive halving decides.

    `grace`, `grace * reduction`, `grace * reduction**2` ..., all below `epochs`.

    Args:
        epochs: Of the whole training; at its end nothing is left to stop.
        grace: Epochs that every trial gets.
        reduction: One trial in so many is kept.
    """
    found = []
    epoch = grace
    while epoch < epochs:
        found.append(epoch)
        epoch *= reduction
    return tuple(found)


def survives_halving(value: float, others: Iterable[float], reduction: int) -> bool:
    """Asynchronous successive halving (Li et al. 2020, MLSys), in its stopping form.

    A trial goes on if it is among the best `1 / reduction` (rounded up) of those that have
    reached the rung so far, itself included; ties go on.

    Args:
        value: Its score at the rung; NaN is worse than anything.
        others: Scores of the others at that rung.
        reduction: One trial in so many is kept.
    """
    seen = _finite(others)
    own = -math.inf if math.isnan(value) else value
    better = sum(other > own for other in seen)
    return better < math.ceil((1 + len(seen)) / reduction)


def survives_median(curve: Curve, epoch: int, others: Iterable[Curve]) -> bool:
    """The median stopping rule (Golovin et al. 2017, KDD, Vizier) on scores of whole epochs.

    A trial is stopped if its best score so far is below the median of what the others had at this
    epoch, once `FEWEST` others have been there.

    Args:
        curve: Its own.
        epoch: Where it stands.
        others: Curves of the others.
    """
    seen = _finite(of_another[epoch] for of_another in others if epoch in of_another)
    own = max(_finite(v for e, v in curve.items() if e <= epoch), default=-math.inf)
    return len(seen) < FEWEST or own >= median(seen)


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
