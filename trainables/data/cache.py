"""Tables that can be made again: Arrow files, each made once on a node and memory-mapped after."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
from filelock import FileLock


def cached(folder: str, name: str, make: Callable[[], pa.Table]) -> pa.Table:
    """The table called `name`; made only if nobody on this node has, under a lock.

    Args:
        folder: Where the files lie; shared by the workers of a node.
        name: All that the table depends on, versions included.
        make: Makes it.
    """
    path = Path(folder) / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.arrow"
    table = _read(path)
    if table is not None:
        return table
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        table = _read(path)
        if table is None:
            table = make()
            _write(path, table)
    return table


def _read(path: Path) -> pa.Table | None:
    """Map a file; None where there is none, or only what a crash left of one."""
    try:
        with pa.memory_map(str(path)) as source:
            return pyarrow.ipc.open_file(source).read_all()
    except (FileNotFoundError, pa.ArrowInvalid):
        return None


def _write(path: Path, table: pa.Table) -> None:
    """Write aside, then make visible in one step."""
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    os.close(handle)
    try:
        with pa.OSFile(aside, "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        Path(aside).replace(path)
    finally:
        Path(aside).unlink(missing_ok=True)
