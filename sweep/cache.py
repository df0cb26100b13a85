"""Where what can be made again lies on this machine: tokenised data, made-up data, worker logs."""

import os
from pathlib import Path

CACHE_VARIABLE = "XLING_CACHE"
"""Names the folder; `~/.cache/xling-sweep` when unset."""


def cache_folder() -> str:
    """Local folder of what can be made again."""
    named = os.environ.get(CACHE_VARIABLE, "")
    return str(Path(named or "~/.cache/xling-sweep").expanduser().absolute())
