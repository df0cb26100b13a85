"""Memory of one trial, in a process that has run others before: its peak, and its cap on a GPU."""

import os
import re
import resource
from contextlib import suppress
from pathlib import Path

import torch

from trainables.shortage import CONTEXT

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


def total(device: torch.device) -> int:
    """Bytes that a device has: those of the GPU, or of the machine."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cap(device: torch.device, share: float) -> None:
    """Hold this process to a share of a GPU: beyond it, allocations fail here and not next door.

    The share pays for the process's context, too, so that all shares of a card fit on it. What
    an earlier trial's allocator kept is given back first.
    """
    if device.type != "cuda":
        return
    torch.cuda.empty_cache()
    own = share if share >= 1 else max(share / 2, share - CONTEXT / total(device))
    torch.cuda.set_per_process_memory_fraction(own)


def mps_pipes() -> str | None:
    """Folder of the CUDA MPS daemon's pipes where one is running; None where there is none."""
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps")  # noqa: S108 - CUDA's own default
    if not (folder / "control").exists():
        return None
    with suppress(OSError, ValueError):  # without the file, the pipe speaks for itself
        pid = int((folder / "nvidia-cuda-mps-control.pid").read_text(encoding="ascii"))
        return str(folder) if Path(f"/proc/{pid}").exists() else None
    return str(folder)
