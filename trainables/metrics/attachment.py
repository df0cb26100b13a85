"""Attachment scores of dependency trees: counts that add up; the ratio comes last."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int


@dataclass(frozen=True, slots=True)
class Attachment:
    """Words hung on the right head, with the right relation or not, out of all words counted.

    The denominator is the gold file's: no length limit and no unknown label shrinks it (D-11
    `strict`).
    """

    n_heads: int
    n_both: int
    n: int

    def __add__(self, other: "Attachment") -> "Attachment":
        return Attachment(
            self.n_heads + other.n_heads, self.n_both + other.n_both, self.n + other.n
        )

    @property
    def uas(self) -> float:
        """Right heads, a fraction in [0, 1].

        Raises:
            ZeroDivisionError: no word is counted.
        """
        return self.n_heads / self.n

    @property
    def las(self) -> float:
        """Right heads with the right relation, a fraction in [0, 1].

        Raises:
            ZeroDivisionError: no word is counted.
        """
        return self.n_both / self.n


def count_attached(
    gold_heads: Int[np.ndarray, " w"],
    gold_labels: Int[np.ndarray, " w"],
    heads: Int[np.ndarray, " w"],
    labels: Int[np.ndarray, " w"],
    counted: Bool[np.ndarray, " w"] | None = None,
) -> Attachment:
    """Compare two annotations word by word.

    Args:
        gold_heads: Heads of the words.
        gold_labels: Their relations, as indices.
        heads: Predicted heads.
        labels: Predicted relations, as indices into the same inventory; what is not in it may be
            any number that `gold_labels` does not hold.
        counted: Words that count; None for all.
    """
    same_head = gold_heads == heads
    same_label = gold_labels == labels
    if counted is None:
        counted = np.ones(len(gold_heads), dtype=bool)
    return Attachment(
        n_heads=int((same_head & counted).sum()),
        n_both=int((same_head & same_label & counted).sum()),
        n=int(counted.sum()),
    )
