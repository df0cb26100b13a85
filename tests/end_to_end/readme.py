"""README.md taken apart: its commands in order, its study files, its Python, its links."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def blocks(language: str) -> list[str]:
    """All fenced blocks of a language, in order."""
    return [body for kind, body in _BLOCK.findall(TEXT) if kind == language]


def commands() -> Iterator[list[str]]:
    """The words of every command of the page, without what stands behind a `#`."""
    for block in blocks("sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def links() -> list[Path]:
    """Files of this project that the page points to."""
    return [ROOT / name for name in _LINK.findall(TEXT)]
