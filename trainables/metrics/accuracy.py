"""Accuracy over words: counts that add up; the ratio comes last."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Words predicted rightly, out of all words of the gold file.

    The denominator is the file's: no length limit, unknown label or untagged word shrinks it
    (D-11 `strict`).
    """

    n_right: int
    n: int

    def __add__(self, other: "Accuracy") -> "Accuracy":
        return Accuracy(self.n_right + other.n_right, self.n + other.n)

    @property
    def value(self) -> float:
        """A fraction in [0, 1].

        Raises:
            ZeroDivisionError: there are no words.
        """
        return self.n_right / self.n


def count_right(gold: Int[np.ndarray, " w"], predicted: Int[np.ndarray, " w"]) -> Accuracy:
    """Compare label indices word by word; a negative gold index can never be right."""
    return Accuracy(int(((gold == predicted) & (gold >= 0)).sum()), len(gold))
