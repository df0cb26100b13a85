"""What a measure is, and the one call that compares all languages in all layers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from trainables import registry, seeding

Pooling = Literal["words", "published"]
"""Which sentence vectors a measure wants: `pooling.Pool` or `pooling.published_states`."""

Side = TypeVar("Side")


@dataclass(frozen=True, slots=True)
class Level:
    """One pair of languages in one layer.

    Attributes:
        value: As the measure defines it; NaN where it is undefined.
        n: Sentence pairs that entered the value.
        null_mean: Mean of the value over shuffled pairings; NaN when none were asked for.
        null_95: Their 95 % quantile; NaN when none were asked for.
    """

    value: float
    n: int
    null_mean: float = math.nan
    null_95: float = math.nan


@dataclass(frozen=True, slots=True)
class Compared:
    """One row: a `Level` with its address; `layer` 0 is the embeddings, l leaves layer l."""

    source: str
    target: str
    layer: int
    value: float
    n: int
    null_mean: float
    null_95: float


@runtime_checkable
class Measure(Protocol):
    """How alike two sets of vectors of the same sentences are."""

    @property
    def name(self) -> str:
        """Its name in `registry.SIMILARITIES`."""

    @property
    def pooling(self) -> Pooling:
        """Which sentence vectors it wants."""

    def options(self) -> dict[str, str | int]:
        """All that must be equal for two values to be comparable, but for `n` (D-22)."""

    def layer(
        self,
        sides: Sequence[Float[np.ndarray, "n d"]],
        pairs: Sequence[tuple[int, int]],
        shuffles: Sequence[Int[np.ndarray, "n"]],
    ) -> list[Level]:
        """Compare pairs of languages in one layer.

        Args:
            sides: One array a language; row i of each is the same sentence.
            pairs: Indices into `sides`; the first of a pair is its pivot.
            shuffles: Permutations of the rows; empty for no null. A measure whose null is
                known in closed form only asks whether there are any.

        Returns:
            One `Level` a pair, in order. A side on which the measure is undefined gives NaN.
        """


def compare(
    states: Mapping[str, Float[np.ndarray, "_layers _n _d"]],
    pivots: Sequence[str],
    measure: str,
    null_draws: int,
    seed: int,
    *,
    threads: int = 1,
) -> list[Compared]:
    """Compare each pivot with every other language, layer by layer.

    Memory: `n x n` float64 matrices of the pivots and of one more language, for one layer (a
    thread). A row depends on its two languages alone (and on `seed` where the null is drawn): not
    on which others are there, nor on their order, nor, to the last bit, on the number of threads.
    For that, BLAS is held to one thread (it would split sums), and layers run side by side.

    Args:
        states: Sentence vectors by language, all of one shape; row i is the same sentence.
        pivots: Some languages of `states`. A pair of two pivots comes once, the one named first
            as its source.
        measure: A name in `registry.SIMILARITIES`.
        null_draws: Shuffled pairings for measures whose null has no closed form; for the others
            any number above 0 gives the exact null. 0 leaves the null out.
        seed: Which pairings are drawn.
        threads: Layers compared at a time.

    Returns:
        Rows in the order of pivots, then targets by name, then layers.

    Raises:
        UnknownName: no such measure.
        ValueError: a pivot has no states, or the languages differ in shape.
    """
    how: Measure = registry.load("similarity measure", measure, registry.SIMILARITIES)
    languages = sorted(states)
    _check(states, pivots)
    pairs = _pairs(languages, list(dict.fromkeys(pivots)))
    if not pairs:
        return []
    n_layers, n, _ = states[languages[0]].shape
    shuffles = _shuffles(n, null_draws, seed)

    def of_layer(layer: int) -> list[Level]:
        return how.layer([states[language][layer] for language in languages], pairs, shuffles)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        levels = list(pool.map(of_layer, range(n_layers)))
    return [
        Compared(
            source=languages[i],
            target=languages[j],
            layer=layer,
            value=level.value,
            n=level.n,
            null_mean=level.null_mean,
            null_95=level.null_95,
        )
        for at, (i, j) in enumerate(pairs)
        for layer in range(n_layers)
        for level in (levels[layer][at],)
    ]


def each_pair(
    pairs: Sequence[tuple[int, int]], build: Callable[[int], Side]
) -> Iterator[tuple[int, Side, Side]]:
    """Visit all pairs while every side is built once and only pivots are kept.

    Args:
        pairs: (pivot, other), as `Measure.layer` gets them.
        build: Makes what the measure needs of one side.

    Yields:
        Position in `pairs`, the pivot's side, the other side.
    """
    kept = {i: build(i) for i in sorted({i for i, _ in pairs})}
    by_other: dict[int, list[int]] = {}
    for at, (_, j) in enumerate(pairs):
        by_other.setdefault(j, []).append(at)
    for j, positions in by_other.items():
        other = kept[j] if j in kept else build(j)
        for at in positions:
            yield at, kept[pairs[at][0]], other


def _check(states: Mapping[str, Float[np.ndarray, "_layers _n _d"]], pivots: Sequence[str]) -> None:
    missing = [pivot for pivot in pivots if pivot not in states]
    if missing:
        raise ValueError(
            f"no states of pivot {missing[0]!r}. Name pivots among: {', '.join(sorted(states))}."
        )
    shapes = {language: states[language].shape for language in sorted(states)}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{language} {shape}" for language, shape in shapes.items())
        raise ValueError(
            f"states differ in shape (layers, sentences, size): {listed}. "
            "Give the same sentences of every language, in the same order."
        )


def _pairs(languages: Sequence[str], pivots: Sequence[str]) -> list[tuple[int, int]]:
    index = {language: i for i, language in enumerate(languages)}
    return [
        (index[pivot], index[other])
        for at, pivot in enumerate(pivots)
        for other in languages
        if other not in pivots[: at + 1]
    ]


def _shuffles(n: int, draws: int, seed: int) -> list[Int[np.ndarray, "n"]]:
    return [
        np.random.default_rng(seeding.stream(seed, "shuffled pairs", draw)).permutation(n)
        for draw in range(draws)
    ]
