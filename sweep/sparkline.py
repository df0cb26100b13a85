"""A curve in one line of text: `▁▃▅▆█`."""

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Values as bars between their least and their greatest.

    Args:
        values: In order; NaN leaves a blank.
        width: Most letters; longer curves are thinned out, first and last kept.

    Returns:
        One letter a value; all the same height where the values are equal.
    """
    if len(values) > width:
        step = (len(values) - 1) / (width - 1)
        values = [values[round(i * step)] for i in range(width)]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return " " * len(values)
    low, span = min(finite), max(finite) - min(finite)
    return "".join(_bar(value, low, span) for value in values)


def _bar(value: float, low: float, span: float) -> str:
    if not math.isfinite(value):
        return " "
    top = len(BARS) - 1
    return BARS[top // 2 if span == 0 else round((value - low) / span * top)]
