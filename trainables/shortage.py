"""Out of memory: tell it from other errors, let go of what failed, and go on with smaller parts.

No torch at the top: the worker asks before it has loaded any.
"""

import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Int

CONTEXT = 600 * 2**20
"""Bytes of a GPU that a process takes beside what it allocates: no cap counts them."""

_NO_MEMORY = (
    "can't allocate memory",  # torch's CPU allocator, a plain RuntimeError
    "not enough memory",  # the same, in its other wording
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDA out of memory",
)


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on the CPU or on a GPU."""
    if isinstance(error, MemoryError):
        return True
    kind = getattr(sys.modules.get("torch"), "OutOfMemoryError", None)
    if kind is not None and isinstance(error, kind):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)


def release(error: BaseException) -> None:
    """Let go of the tensors that the failed frames hold, and of what a GPU's allocator keeps."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def by_halves(
    batches: Iterable[Int[np.ndarray, " b"]],
    lengths: Int[np.ndarray, " S"],
    run: Callable[[Int[np.ndarray, " b"]], None],
) -> None:
    """Run batch after batch; one for which memory runs out is run in halves, and so on.

    After that, no batch of as many padded pieces is tried again.

    Args:
        batches: Indices of sentences.
        lengths: Pieces of each sentence.
        run: Called for each batch or part of one, in order. Keeps what it found in its last
            step, so that a failed call has left nothing behind.

    Raises:
        RuntimeError: a single sentence does not fit; or any other error of `run`.
        MemoryError: as above.
    """
    limit: float = np.inf
    waiting = deque(batches)
    while waiting:
        chosen = waiting.popleft()
        n_pieces = len(chosen) * int(lengths[chosen].max())
        if n_pieces <= limit or len(chosen) == 1:
            try:
                run(chosen)
            except (RuntimeError, MemoryError) as error:
                if len(chosen) == 1 or not is_shortage(error):
                    raise
                release(error)
                limit = n_pieces - 1
            else:
                continue
        middle = len(chosen) // 2
        waiting.extendleft((chosen[middle:], chosen[:middle]))
