"""Rounding and colours."""

import pytest

from analysis import printed


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.95104, "95.10"),
        (0.28675, "28.68"),  # half up, though 0.28675 * 100 is 28.674999...
        (0.952449999, "95.24"),
        (1.0, "100.00"),
        (float("nan"), ""),
    ],
)
def test_scores_round_half_up_and_last(fraction, text):
    """A fraction becomes percent with two decimals, ties going up."""
    assert printed.score(fraction) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (-0.023, "-2.30"),
        (0.009, "+0.90"),
        (-0.00004, "0.00"),
        (0.0, "0.00"),
        (-0.02345, "-2.35"),
        (0.02345, "+2.35"),
    ],
)
def test_differences_show_their_sign(fraction, text):
    """A difference carries its sign, but for 0; ties go away from 0 on both sides."""
    assert printed.delta(fraction) == text


def test_noise_of_a_sum_decides_no_tie():
    """0.1 + 0.2 as fractions print as 30, and a tie reached by summing rounds as the tie does."""
    assert printed.score(0.1 + 0.2, 0) == "30"
    assert printed.score((0.92500 + 0.92510) / 2) == printed.score(0.92505)


@pytest.mark.parametrize(
    ("difference", "name"),
    [
        (0.0, "up"),
        (0.01, "up"),
        (-0.00001, "down"),
        (-0.0199, "down"),
        (-0.02, "down2"),
        (0.75 - 0.77, "down2"),
        (0.93 - 0.95, "down2"),  # -0.0199999999... by rounding of doubles
        (-0.0499, "down2"),
        (0.45 - 0.50, "down5"),
        (-0.3, "down5"),
        (float("nan"), ""),
    ],
)
def test_colour_is_the_most_severe_class_of_the_unrounded_difference(difference, name):
    """At least REF, below, 2 points, 5 points: thresholds belong to the severe side."""
    assert printed.colour(difference) == name


def test_colour_does_not_round_first():
    """-1.996 prints as -2.00 and still is no loss of 2 points."""
    assert printed.delta(-0.01996) == "-2.00"
    assert printed.colour(-0.01996) == "down"


def test_p_values_are_not_zero():
    """A small p prints as a bound."""
    assert printed.p_value(0.0004) == "p < 0.001"
    assert printed.p_value(0.0625) == "p = 0.062"


def test_true_minus_signs_leave_words_alone():
    """Only the hyphen before a number becomes a minus."""
    text = printed.typeset_numbers("re-run 11-12 gave -0.5")
    assert text == "re-run 11-12 gave \N{MINUS SIGN}0.5"
