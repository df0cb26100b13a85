"""Take many small commits into few big tables, while workers commit and readers read.

The order of steps is the safety: new part, then CURRENT, then delete what it replaced. Killed
between any two, the store holds every commit, and one that it holds twice is read once by its id.
"""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain

import pyarrow as pa

from analysis.layout import (
    CURRENT,
    Current,
    File,
    Folder,
    Part,
    commit_ids,
    read_commits,
    read_part,
)
from analysis.rowfiles import conform, open_parquet, read_group, table_writer
from analysis.schema import ASIDE, EVERY
from sweep.storage import StorageError, Store

BATCH = 2000
"""Commits taken in at once; bounds the memory."""

GROWTH = 2
"""A part is merged with the one before it unless that is more than this many times its size, so
that a row is written again only O(log n) times in all."""

LEFTOVER_AGE = timedelta(hours=1)
"""Age at which half-done work of a killed process is surely nobody's any more."""

_GROUP = 65_536  # rows of a row group
_GROUPS = {"sentences": 8_192}  # a row of it is a kilobyte
_THREADS = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did.

    Attributes:
        absorbed: Commits that went into tables.
        parts: Parts that there are now.
        ignored: Paths of commits that were torn or foreign, and stay where they are.
    """

    absorbed: int
    parts: int
    ignored: tuple[str, ...]


def compact(
    store: Store, *, check: Callable[[], None] = lambda: None, now: datetime | None = None
) -> Compaction:
    """Take all whole commits into tables. Only the driver that holds the store's lock may.

    Args:
        store: The result store.
        check: Called before each step that others would see; raises when the lock was lost.
        now: For the age of leftovers; replaced in tests.

    Raises:
        StorageError: the store refused a file, or somebody else compacts it. Nothing is lost.
        TableError: a compacted table is torn, foreign or of another version.
    """
    check()
    _sweep(store, (now or datetime.now(UTC)))
    files = commit_ids(store.files("commits"))
    current = Current.read(store)
    known = _ids(store, current.parts)
    # Left by a killed compaction, or committed again by a worker that was thought dead.
    _delete(store, [file for commit_id, file in files.items() if commit_id in known])
    new = sorted(item for item in files.items() if item[0] not in known)
    absorbed, ignored = 0, []
    for start in range(0, len(new), BATCH):
        batch = dict(new[start : start + BATCH])
        loose = read_commits(store, batch, whole=True)
        ignored += [file.path for file in loose.bad]
        if loose.ids:
            current = _publish(store, current, loose.tables, len(loose.ids), check)
            _delete(store, [batch[commit_id] for commit_id in loose.ids])
            absorbed += len(loose.ids)
    return Compaction(absorbed, len(current.parts), tuple(ignored))


def _publish(
    store: Store,
    current: Current,
    new: Mapping[str, pa.Table],
    n: int,
    check: Callable[[], None],
) -> Current:
    """Write a part of the new rows and of the small parts before them, and make it count."""
    kept = list(current.parts)
    replaced: list[Part] = []
    while kept and kept[-1].n <= GROWTH * n:
        replaced.insert(0, kept.pop())
        n += replaced[0].n
    generation = current.generation + 1
    part = Part(f"{generation:06d}-{uuid.uuid4().hex[:8]}", n)
    for name in EVERY:
        data, n_rows = _merged(store, replaced, name, new[name])
        if n_rows or name not in ASIDE:
            store.publish(part.path(name), data)
    check()
    if Current.read(store) != current:
        raise StorageError(
            f"{store.where}/{CURRENT} was changed by somebody else during a compaction. "
            "Run one driver a store; all results are kept, and the next run tidies up."
        )
    following = Current(generation, (*kept, part))
    store.publish(CURRENT, following.to_json().encode())
    for old in replaced:
        store.delete_folder(f"tables/{old.name}")
    return following


def _merged(store: Folder, parts: Iterable[Part], name: str, new: pa.Table) -> tuple[bytes, int]:
    """Parquet of the rows of some parts and then new ones, with little of it in memory at once.

    Returns:
        The file, and how many rows it has.
    """
    sink, n, size = pa.BufferOutputStream(), 0, _GROUPS.get(name, _GROUP)
    with table_writer(sink, EVERY[name]) as writer:
        waiting: list[pa.Table] = []
        for rows in chain(_groups(store, parts, name), [new]):
            waiting.append(rows)
            n += len(rows)
            if sum(map(len, waiting)) >= size:
                writer.write_table(pa.concat_tables(waiting), row_group_size=size)
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=size)
    return bytes(sink.getvalue()), n


def _groups(store: Folder, parts: Iterable[Part], name: str) -> Iterator[pa.Table]:
    for part in parts:
        where = f"{store.where}/{part.path(name)}"
        try:
            data = store.read(part.path(name))
        except FileNotFoundError:
            if name in ASIDE:
                continue  # nothing to put aside when the part was written
            raise
        file = open_parquet(data, where)
        for group in range(file.num_row_groups):
            yield conform(read_group(file, group, where, len(data)), EVERY[name], where)


def _ids(store: Folder, parts: Iterable[Part]) -> set[str]:
    columns = ["commit_id"]
    tables = [read_part(store, part, "trials", columns=columns) for part in parts]
    return {commit_id for table in tables for commit_id in table.column(0).to_pylist()}


def _delete(store: Store, files: list[File]) -> None:
    """Delete files side by side: each is one round trip on an object store."""
    if files:
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(store.delete, [file.path for file in files]))


def _sweep(store: Store, now: datetime) -> None:
    """Delete what killed writers and compactions left, once it is old enough to be nobody's."""
    store.sweep_aside(LEFTOVER_AGE, now)
    counted = {part.name for part in Current.read(store).parts}
    newest: dict[str, datetime] = {}
    for file in store.files("tables"):
        _, name, *inside = file.path.split("/")
        if inside and name not in counted and file.modified is not None:
            newest[name] = max(file.modified, newest.get(name, file.modified))
    for name, modified in newest.items():
        if modified < now - LEFTOVER_AGE:
            log.info("tables/%s was left by a killed compaction; deleting it", name)
            store.delete_folder(f"tables/{name}")
