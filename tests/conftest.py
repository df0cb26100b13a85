"""Settings shared by all tests: no network, no stray threads, and where the shared data lie."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and models; tests that need it are skipped where it is absent."""
    default = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("XLING_SHARED", default))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set XLING_SHARED)")
    return folder
