"""A folder of results: what was written into it, under names that are safe."""

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folder:
    """Where files go; remembers which."""

    root: Path
    files: list[Path] = field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file, its folder made if need be; text as UTF-8."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        self.files.append(path)
        return path


def slug(text: str) -> str:
    """A part of a file name, safe whatever the names of a study hold."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"
