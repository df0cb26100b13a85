"""What a figure was measured on: stands beside every one of them."""

import os
import platform
from importlib.metadata import version


def machine(*packages: str) -> dict[str, object]:
    """Processor, cores, load of others on them, Python and package versions."""
    return {
        "machine": f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores",
        "load_average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }
