"""The machine: cores, memory, open files, accelerators."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from sweep.doctor.finding import Finding, size

_A_TRIAL = 2e9
"""Bytes of memory that one trial of a small encoder wants (0.6 to 1.5 GB were measured)."""

_FILES = 4096
"""Open files that a Ray driver with a few hundred trials may want."""


def cores() -> Iterator[Finding]:
    """Cores that this process may use, and a variable that would starve them."""
    here, all_of_them = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    of = "" if here == all_of_them else f" of {all_of_them} (the others are not ours to use)"
    quota = _quota()
    if quota and quota < here:
        yield Finding(
            "cores",
            "warn",
            f"{here}{of}, but a quota of {quota:g}",
            f"Give --workers {max(1, int(quota))}: more trials at a time would take turns.",
        )
    else:
        yield Finding("cores", "ok", f"{here}{of}")
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads is not None:
        yield Finding(
            "threads",
            "ok",
            f"OMP_NUM_THREADS={threads}; a trial takes what [resources] cpus says all the same",
        )


def memory() -> Iterator[Finding]:
    """Memory that is free, against what a trial on each core would want."""
    free = _free_memory()
    if free is None:
        yield Finding("memory", "ok", "unknown: no /proc/meminfo here")
        return
    n_trials = int(free / _A_TRIAL)
    wanted = len(os.sched_getaffinity(0))
    if n_trials >= wanted:
        yield Finding("memory", "ok", f"{size(free)} free")
    else:
        yield Finding(
            "memory",
            "fail" if free < _A_TRIAL / 4 else "warn",
            f"{size(free)} free, for about {max(1, n_trials)} trials at a time",
            f"Free some, or give --workers {max(1, n_trials)}.",
        )


def open_files() -> Iterator[Finding]:
    """How many files a process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _FILES:
        yield Finding("open files", "ok", "unlimited" if soft < 0 else f"{soft}")
    else:
        most = "" if hard < 0 else f" (at most {hard} here)"
        yield Finding("open files", "warn", f"{soft}", f"ulimit -n {_FILES}{most}: Ray wants many.")


def accelerators() -> Iterator[Finding]:
    """GPUs as torch sees them, their precision, and whether trials can share one (MPS)."""
    import torch

    from trainables.memory import mps_pipes

    if not torch.cuda.is_available():
        if Path("/dev/nvidia0").exists():
            yield Finding(
                "GPU",
                "warn",
                f"there is one, but torch {torch.__version__} cannot use it",
                "Install a torch built for CUDA, and a driver that fits it (nvidia-smi).",
            )
        else:
            yield Finding("GPU", "ok", "none: trials run on the CPU")
        return
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        free, total = torch.cuda.mem_get_info(index)
        bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
        found = f"{about.name}, {size(free)} of {size(total)} free, {_precision(bf16=bf16)}"
        yield Finding(
            f"GPU {index}",
            "ok" if free > total / 2 else "warn",
            found,
            "" if free > total / 2 else "Another process fills it: see nvidia-smi.",
        )
    if pipe := mps_pipes():
        yield Finding("MPS", "ok", f"a daemon is there ({pipe}): trials on a share overlap")
    else:
        yield Finding("MPS", "ok", "no daemon: trials that share a GPU take turns on it")


def _precision(*, bf16: bool) -> str:
    return "bf16" if bf16 else 'no bf16 (options.precision = "fp16" or "fp32")'


def _quota() -> float | None:
    """Cores that a container's quota leaves; None without one."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) / int(period)


def _free_memory() -> float | None:
    """Bytes that may still be taken: of the machine, or of a container's limit if that is less."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, StopIteration):
        return None
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return free
    return free if limit == "max" else min(free, int(limit) - used)
