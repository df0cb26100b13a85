"""Scores of one probe a layer (Wu and Dredze 2019, Figure 2): where something can be read off."""

import re
from collections.abc import Sequence

import numpy as np

from analysis import gaps, labels
from analysis.blocks import Block
from analysis.figures.layer_curves import Curve, Curves

_AIR = 0.01
_LEAST_SPAN = 0.15
"""The axis spans 15 points at least: the layers are nearly alike, and must look so."""

_LAYER = re.compile(r"(.+)@(\d+)")


def of_a_layer(metric: str) -> tuple[str, int] | None:
    """`accuracy@8` is accuracy in layer 8; None for a metric of the whole model."""
    found = _LAYER.fullmatch(metric)
    return (found[1], int(found[2])) if found else None


def probing_data(block: Block, every: Sequence[Block]) -> Curves | None:
    """Mean over test sets and seeds of the same metric in every layer, one line an ablation.

    Args:
        block: The metric of the whole model.
        every: All blocks; those of single layers are found by their names.

    Returns:
        None where no layer has a score of its own.
    """
    layers: dict[int, Block] = {}
    for other in every:
        of = of_a_layer(other.metric)
        if (
            of is not None
            and of[0] == block.metric
            and (other.lineup is block.lineup and other.family == block.family)
        ):
            layers[of[1]] = other
    if not layers:
        return None
    order = sorted(layers)
    means = np.stack(
        [gaps.over_seeds(layers[layer].values).mean.mean(axis=1) for layer in order], axis=1
    )
    lines = tuple(
        Curve(name, labels.ablation_column(name), "reference" if name == labels.REFERENCE
              else "other", means[a])
        for a, name in enumerate(block.lineup.ablations)
        if not np.isnan(means[a]).all()
    )  # fmt: skip
    if not lines:
        return None
    n = len(block.targets)
    tests = f", mean of {n} test sets" if n > 1 else ""
    title = f"A probe on each layer alone{tests}"
    high = min(1.0, float(np.nanmax(means)) + _AIR)
    low = max(0.0, min(float(np.nanmin(means)) - _AIR, high - _LEAST_SPAN))
    limits = (low, high)
    return Curves(title, labels.metric(block.metric), tuple(order), lines, y_limits=limits)
