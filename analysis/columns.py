"""Arrow columns as numpy: millions of repeated strings become small integers, in one order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of strings.

    Attributes:
        codes: Index into `names`, one a row; -1 where the column is null.
        names: The distinct strings, sorted, so that the order of rows changes nothing.
    """

    codes: Int[np.ndarray, " rows"]
    names: tuple[str, ...]


def coded(column: pa.ChunkedArray) -> Coded:
    """Encode a string or dictionary column."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # an empty column has no chunk to combine
        return Coded(np.zeros(0, np.int64), ())
    found = whole.dictionary.to_pylist()
    names = tuple(sorted(set(found)))
    rank = {name: i for i, name in enumerate(names)}
    order = np.array([rank[name] for name in found] + [-1], np.int64)
    return Coded(order[pc.fill_null(whole.indices, len(found)).to_numpy()], names)


def positions(column: pa.ChunkedArray, among: Sequence[str]) -> Int[np.ndarray, " rows"]:
    """Index of each string in `among`; -1 where it is not there."""
    encoded = coded(column)
    index = {name: i for i, name in enumerate(among)}
    lookup = np.array([index.get(name, -1) for name in encoded.names] + [-1], np.int64)
    found: Int[np.ndarray, " rows"] = lookup[encoded.codes]
    return found


def numbers(column: pa.ChunkedArray) -> Float[np.ndarray, " rows"]:
    """A numeric column as float64; null becomes NaN."""
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


def integers(column: pa.ChunkedArray) -> Int[np.ndarray, " rows"]:
    """An integer column without nulls, as int64."""
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def starts_of_runs(*keys: Int[np.ndarray, " rows"]) -> Bool[np.ndarray, " rows"]:
    """Where a row differs from the one before it in any key; the first row is a start."""
    is_start = np.zeros(len(keys[0]), bool)
    is_start[:1] = True
    for key in keys:
        is_start[1:] |= key[1:] != key[:-1]
    return is_start
