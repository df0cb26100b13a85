"""Macro F1 over the classes of a file: every class counts alike, however rare."""

import numpy as np
from jaxtyping import Int


def macro_f1(gold: Int[np.ndarray, " s"], predicted: Int[np.ndarray, " s"]) -> float:
    """Mean over classes of ``2 tp / (2 tp + fp + fn)``.

    Classes are those that occur in `gold` or in `predicted`, as in scikit-learn. A class that was
    never learnt needs an index of its own in `gold`, and has F1 0.

    Raises:
        ValueError: there are no examples.
    """
    if len(gold) == 0:
        raise ValueError("there are no examples: macro F1 is undefined")
    _, both = np.unique(np.concatenate([gold, predicted]), return_inverse=True)
    n_classes = int(both.max()) + 1
    is_gold, is_predicted = both[: len(gold)], both[len(gold) :]
    right = np.bincount(is_gold[is_gold == is_predicted], minlength=n_classes)
    either = np.bincount(is_gold, minlength=n_classes) + np.bincount(
        is_predicted, minlength=n_classes
    )
    return float((2 * right / either).mean())
