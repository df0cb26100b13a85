"""How fast the machine is while a trial runs: a fixed matrix product, timed now and then.

A rented or shared machine is not always as fast as it was an hour ago. What this says of a trial
tells a slow trial from a slow machine, so that forecasts learn from work and not from neighbours.
"""

import time
from functools import cache

import torch
from torch import Tensor

_PERIOD_S = 3.0
_TIMES = 2  # the shorter one counts: a pause of the process is not the machine's speed
_ROWS, _INNER, _COLUMNS = 256, 384, 1536  # a feed-forward step of a small encoder


class Pace:
    """Times `[256, 384] x [384, 1536]` in float32 every few seconds, on the CPU.

    Takes about 3 in 1,000 of a trial's time, and changes no number of it: nothing is drawn.

    Args:
        device: Where the trial runs; nothing is timed for a GPU, whose speed does not depend on it.
    """

    def __init__(self, device: torch.device) -> None:
        """Nothing is timed yet."""
        self._is_on = device.type == "cpu"
        self._next = 0.0
        self._sum, self._n = 0.0, 0

    def look(self) -> None:
        """Time it once more, if it is time to."""
        if not self._is_on or time.monotonic() < self._next:
            return
        self._sum += min(_once() for _ in range(_TIMES))
        self._n += 1
        self._next = time.monotonic() + _PERIOD_S

    @property
    def matmul_s(self) -> float | None:
        """Mean seconds of the product; None where it was never timed."""
        return self._sum / self._n if self._n else None


def _once() -> float:
    left, right, out = _matrices()
    began = time.perf_counter()
    with torch.inference_mode():
        torch.mm(left, right, out=out)
    return time.perf_counter() - began


@cache
def _matrices() -> tuple[Tensor, Tensor, Tensor]:
    return torch.ones(_ROWS, _INNER), torch.ones(_INNER, _COLUMNS), torch.empty(_ROWS, _COLUMNS)
