"""What a search of hyper-parameters may try: values to choose from, or ranges; pure."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

Value = float | int | str
"""Of one hyper-parameter."""

Point = Mapping[str, Value]
"""One value for each searched hyper-parameter, by its name in `trainables.spec.HyperParameters`."""

_DIGITS = 4
"""Significant digits of a proposed number: more would only hide that two points are the same."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Some values of one hyper-parameter, in the order of the study file."""

    values: tuple[Value, ...]

    def at(self, part: float) -> Value:
        """The value at a part in [0, 1) of the list."""
        return self.values[int(part * len(self.values))]

    def as_json(self) -> Any:  # noqa: ANN401 - plain JSON
        """What enters the id of a search."""
        return list(self.values)


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers from `low` to `high`, both included.

    Attributes:
        low: Least.
        high: Greatest.
        log: Whether equal ratios count alike, and not equal differences.
        is_whole: Only whole numbers.
    """

    low: float
    high: float
    log: bool = False
    is_whole: bool = False

    def at(self, part: float) -> Value:
        """The number at a part in [0, 1) of the range."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return self.tidy(math.exp(low + part * (high - low)))
        if self.is_whole:
            return int(self.low) + int(part * (int(self.high) - int(self.low) + 1))
        return self.tidy(self.low + part * (self.high - self.low))

    def tidy(self, number: float) -> Value:
        """The nearest number that may be tried: whole, or of four significant digits."""
        if self.is_whole:
            return round(min(max(number, self.low), self.high))
        return min(max(float(f"{number:.{_DIGITS}g}"), self.low), self.high)

    def as_json(self) -> Any:  # noqa: ANN401 - plain JSON
        """What enters the id of a search."""
        return {"low": self.low, "high": self.high, "log": self.log}


Axis = Choices | Range


@dataclass(frozen=True, slots=True)
class Space:
    """The searched hyper-parameters, each with what may be tried, in one order."""

    axes: Mapping[str, Axis]

    @property
    def size(self) -> int | None:
        """Number of points; None where a range makes it endless."""
        sizes = [len(axis.values) for axis in self.axes.values() if isinstance(axis, Choices)]
        return math.prod(sizes) if len(sizes) == len(self.axes) else None

    def grid(self) -> Iterator[Point]:
        """All points, the last hyper-parameter fastest.

        Raises:
            ValueError: there is a range.
        """
        if self.size is None:
            raise ValueError("a range has no grid")
        lists = [axis.values for axis in self.axes.values() if isinstance(axis, Choices)]
        for values in product(*lists):
            yield dict(zip(self.axes, values, strict=True))

    def draw(self, seed: int) -> Point:
        """One point at random; a function of the seed alone."""
        rng = random.Random(seed)
        return {name: axis.at(rng.random()) for name, axis in self.axes.items()}

    def middle(self) -> Point:
        """A point that stands for the whole space where one is needed: for prices and shapes."""
        return {name: axis.at(0.5) for name, axis in self.axes.items()}

    def as_json(self) -> dict[str, Any]:
        """What enters the id of a search."""
        return {name: axis.as_json() for name, axis in self.axes.items()}


def point_text(point: Point) -> str:
    """A point as people say it: `batch_size 16, learning_rate 5e-05`."""
    return ", ".join(f"{name} {value}" for name, value in sorted(point.items()))
