"""Arrays on their way to a device."""

import numpy as np
import torch


def put(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array on a device; the host does not wait until it has arrived on a GPU.

    A copy to a GPU goes by pinned memory, which torch keeps until the copy has ended: the host can
    queue the rest of a step while the GPU is still at the one before.
    """
    found = torch.from_numpy(array)
    if device.type == "cuda":
        found = found.pin_memory()
    return found.to(device, non_blocking=True)
