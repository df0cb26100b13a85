"""Random choices that are the same on every Python: built on `random()` alone, from named seeds."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """A named stream of choices.

    Only `random.Random.random` is promised to stay the same between versions of Python; `choice`
    and `shuffle` are not, so both are spelled out here.
    """

    def __init__(self, *name: str | int) -> None:
        """Start the stream of that name; equal names give equal choices."""
        self._random = random.Random(
            "/".join(str(part) for part in name)
        )  # a text seeds by SHA-512

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return self._random.random() < probability

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, all alike."""
        return int(self._random.random() * n)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items, all alike."""
        return items[self.below(len(items))]

    def zipf(self, items: Sequence[Item]) -> Item:
        """One of the items, the k-th with a weight of 1 / (k + 1)."""
        total = sum(1 / (k + 2) for k in range(len(items)))
        left = self._random.random() * total
        for k, item in enumerate(items):
            left -= 1 / (k + 2)
            if left < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in another order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            at = self.below(last + 1)
            order[last], order[at] = order[at], order[last]
        return order
