"""Fractions as printed: points, rounded last and half up, and the colour of a difference."""

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
"""Stands where there is no number."""

CLASSES = ("up", "down", "down2", "down5")
"""At least REF; below REF; at least 2 points below; at least 5. The most severe counts."""

_NOISE = 1e-9
"""A sum of fractions may miss a threshold by rounding; this much is forgiven."""


@lru_cache(1 << 16)
def rounded(fraction: float, digits: int = 2) -> Decimal:
    """Percent of a fraction, rounded half up (away from zero) to `digits` decimals.

    The twelfth significant digit is the last that counts: noise of a sum decides no tie.
    """
    points = Decimal(f"{fraction:.12g}").scaleb(2)
    found = points.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return found or abs(found)


def score(fraction: float, digits: int = 2) -> str:
    """A score in percent: `95.10`; empty where there is none."""
    return "" if math.isnan(fraction) else str(rounded(fraction, digits))


def delta(fraction: float, digits: int = 2) -> str:
    """A difference in points with its sign: `-2.30`, `+0.90`, `0.00`; empty where there is none."""
    if math.isnan(fraction):
        return ""
    found = rounded(fraction, digits)
    return f"+{found}" if found > 0 else str(found)


def prose(fraction: float, digits: int = 1) -> str:
    """The size of a difference in points, without sign, for a sentence."""
    return str(abs(rounded(fraction, digits)))


def typeset(text: str) -> str:
    """A number with a true minus sign."""
    return text.replace("-", MINUS)


def typeset_numbers(text: str) -> str:
    """A sentence whose negative numbers get a true minus sign; hyphens of words stay."""
    return re.sub(r"(?<![\w-])-(?=\d)", MINUS, text)


def p_value(p: float) -> str:
    """`p = 0.012`, `p < 0.001`; a dash where there is none."""
    if math.isnan(p):
        return DASH
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"  # noqa: PLR2004 - as it is printed


def colour(difference: float, thresholds: tuple[float, float] = (0.02, 0.05)) -> str:
    """Class of an unrounded difference (fraction); empty where there is none.

    Args:
        difference: To the reference.
        thresholds: Losses at which the classes `down2` and `down5` begin; 2 and 5 points but in
            Table 5 of Muller et al. (2021), which has 5 and 10.
    """
    if math.isnan(difference):
        return ""
    below = -difference + _NOISE
    if below >= thresholds[1]:
        return "down5"
    if below >= thresholds[0]:
        return "down2"
    return "down" if below > 2 * _NOISE else "up"
