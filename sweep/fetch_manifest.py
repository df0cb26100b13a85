"""What was fetched, from where, when, and its hash: `MANIFEST.tsv` in the folder of the data."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from sweep.fetch_http import FetchError

MANIFEST = "MANIFEST.tsv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file that was fetched; the columns of the manifest, in their order.

    Attributes:
        path: Below the folder, with `/`.
        sha256: Hash of the file.
        size: Bytes of the file.
        url: Where it came from.
        commit: Commit that the server named; empty where it named none.
        source_sha256: Hash of what came over the network, if that was converted; else empty.
        fetched: Day and time, UTC, ISO 8601.
        note: What the conversion counted.
    """

    path: str
    sha256: str
    size: int
    url: str
    commit: str = ""
    source_sha256: str = ""
    fetched: str = ""
    note: str = ""


_COLUMNS = tuple(field.name for field in fields(Entry))


def read_manifest(folder: Path) -> dict[str, Entry]:
    """Path -> entry; empty where nothing was fetched yet.

    Raises:
        FetchError: there is a file of that name, and it is none of ours or is damaged.
    """
    path = folder / MANIFEST
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise FetchError(f"{path}: cannot be read ({error}).") from error
    if not lines or tuple(lines[0].split("\t")) != _COLUMNS:
        raise FetchError(
            f"{path}: not written by `sweep data get`. Choose another folder for --to."
        )
    entries = {}
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        row = dict(zip(_COLUMNS, cells, strict=False))
        if len(cells) != len(_COLUMNS) or not row["size"].isdecimal():
            raise FetchError(
                f"{path}:{number}: damaged. Take the line out; its file is fetched anew."
            )
        size = int(row.pop("size"))
        entries[row["path"]] = Entry(size=size, **row)
    return entries


def write_manifest(folder: Path, entries: Mapping[str, Entry]) -> None:
    """Replace the manifest in one step; rows are sorted by path."""
    rows = [entries[path] for path in sorted(entries)]
    text = "".join(
        "\t".join(str(value) for value in values) + "\n"
        for values in (_COLUMNS, *([getattr(row, name) for name in _COLUMNS] for row in rows))
    )
    handle, aside = tempfile.mkstemp(dir=folder, prefix=".manifest-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(0o644)
        Path(aside).replace(folder / MANIFEST)
    finally:
        Path(aside).unlink(missing_ok=True)


def is_intact(folder: Path, entry: Entry) -> bool:
    """Whether the file is what the manifest says; False also where there is none."""
    path = folder / entry.path
    if not path.is_file() or path.stat().st_size != entry.size:
        return False
    return sha256_of(path) == entry.sha256


def sha256_of(path: Path) -> str:
    """Hash of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
