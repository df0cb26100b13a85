"""One seed, many independent streams, each named by its purpose (D-03).

A stream depends on (seed, purpose) alone: not on how many random numbers were drawn before, nor on
which ablation runs. So the head starts alike and data come in the same order in all ablations of
a seed, and a trial resumed at step k draws what it would have drawn.
"""

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def stream(seed: int, *purpose: str | int) -> int:
    """The 63-bit seed of one named stream, e.g. `stream(1, "order", epoch)`."""
    name = "\x1f".join(str(part) for part in (seed, *purpose))
    digest = hashlib.blake2b(name.encode(), digest_size=8, person=b"xling-sweep").digest()
    return int.from_bytes(digest, "big") >> 1


def generator(seed: int, *purpose: str | int) -> "torch.Generator":
    """A CPU generator at the start of one named stream."""
    import torch

    return torch.Generator().manual_seed(stream(seed, *purpose))
