"""Peak memory of one trial, in a process that has run others before."""

import re
import resource
from contextlib import suppress
from pathlib import Path

import torch

_RESIDENT, _RESTART = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def restart_peak(device: torch.device) -> None:
    """Count the peak from now on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(OSError):  # not Linux, or not allowed: then the peak is the process's own
        _RESTART.write_text("5", encoding="ascii")  # man 5 proc: the peak resident set


def peak(device: torch.device) -> int:
    """Bytes: allocated on a GPU, resident on the CPU. The most since `restart_peak`."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    with suppress(OSError):
        found = re.search(
            r"^VmHWM:\s+(\d+) kB$", _RESIDENT.read_text(encoding="utf-8"), re.MULTILINE
        )
        if found is not None:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
