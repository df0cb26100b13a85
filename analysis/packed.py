"""Many small counts as bytes, and back: a byte each, where none is above 255."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

_WIDTHS = {width: np.dtype(f"<u{width}") for width in (1, 2, 4)}


def pack(counts: Sequence[int]) -> bytes:
    """Counts as unsigned integers, little-endian, as narrow as the largest allows."""
    most = max(counts, default=0)
    kind = next(kind for kind in _WIDTHS.values() if most <= np.iinfo(kind).max)
    return np.asarray(counts, dtype=np.int64).astype(kind).tobytes()


def unpack(data: bytes | memoryview, n: int) -> Int[np.ndarray, " n"]:
    """What `pack` made of n counts.

    Raises:
        ValueError: the bytes do not hold n counts.
    """
    width = len(data) // n if n else 1
    if width not in _WIDTHS or width * n != len(data):
        raise ValueError(f"{len(data)} bytes do not hold {n} counts of 1, 2 or 4 bytes.")
    return np.frombuffer(data, _WIDTHS[width])
