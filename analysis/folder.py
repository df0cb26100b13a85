"""A folder of results: what was written into it, under names that are safe."""

import re
from dataclasses import dataclass, field
from pathlib import Path


class FolderError(OSError):
    """A file of a report cannot be written: says which, why, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where files go; remembers which."""

    root: Path
    files: list[Path] = field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file, its folder made if need be; text as UTF-8.

        Raises:
            FolderError: no space, no right to, or something else is in the way.
        """
        path = self.root / name
        data = content.encode() if isinstance(content, str) else content
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise FolderError(
                f"{path}: cannot be written ({error.strerror or error}). Make room there, or give "
                "another folder by --out; the report is written anew each time."
            ) from error
        self.files.append(path)
        return path


def slug(text: str) -> str:
    """A part of a file name, safe whatever the names of a study hold."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"
