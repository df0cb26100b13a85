"""What a figure was measured on: stands beside every one of them."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

_TURNS = 1_000_000
_STAT = Path("/proc/stat")
_STOLEN = 7  # which of the times of /proc/stat


def machine(*packages: str) -> dict[str, object]:
    """Processor, cores, their speed and what others took of them, Python and package versions."""
    passed = [after - before for before, after in zip(_BEGUN, _times(), strict=True)]
    return {
        "machine": f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores",
        "loop_s": {"before": _LOOP_S, "after": _loop()},
        "stolen": round(passed[_STOLEN] / max(1, sum(passed)), 3) if passed else None,
        "load_average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }


def _loop() -> float:
    """Seconds of one core for a fixed piece of Python.

    A rented machine is not always as fast as it is now; figures of two days are comparable where
    these are alike.
    """
    began, total = time.process_time(), 0
    for i in range(_TURNS):
        total += i * i % 7
    return round(time.process_time() - began, 3)


def _times() -> list[int]:
    """Hundredths of a second of all cores, by what they did; empty where nobody counts."""
    if not _STAT.exists():
        return []
    return [int(text) for text in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:9]]


_BEGUN, _LOOP_S = _times(), _loop()
