"""How a result store lies on disk, and how to read it while workers and a driver write.

commits/<2>/<commit id>.parquet        one finished, pruned or failed job each
tables/CURRENT.json                    which parts count; replaced in one step
tables/<part>/<table>.parquet          commits taken together; never changed
"""

import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from analysis.rowfiles import (
    COMMIT,
    WHOLE,
    TableError,
    conform,
    decode,
    explode,
    open_parquet,
    read_all,
)
from analysis.schema import EVERY, TABLES

CURRENT = "tables/CURRENT.json"
COMMIT_NAME = re.compile(r"commits/[^/]{2}/([\w+-]+(?:\.[\w-]+)?)\.parquet")
"""Path of a commit below the store; the group is its id."""

_THREADS = 8  # reads wait on a disk or a network, so more threads than cores pay
_TRIES = 20
_BATCH = 200  # commits held undigested at a time

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class File:
    """A file below a folder: its path from there, bytes, and time of its last change."""

    path: str
    size: int
    modified: datetime | None


class Folder:
    """Files below a local path or any URI that `pyarrow.fs` knows; here only for reading.

    `s3://` takes credentials from the standard AWS variables, and another endpoint from
    `AWS_ENDPOINT_URL` or `?endpoint_override=host:port&scheme=http`.

    Raises:
        ValueError: an unknown kind of URI.
    """

    def __init__(self, where: str | Path) -> None:
        text = str(where)
        if "://" in text:
            try:
                self.fs, root = pafs.FileSystem.from_uri(text)
            except (pa.ArrowException, OSError) as error:
                raise ValueError(
                    f"storage '{text}': {error}. Write a folder, file://, s3:// or gs://."
                ) from error
        else:
            self.fs, root = pafs.LocalFileSystem(), str(Path(text).expanduser().absolute())
        self.root: str = root.rstrip("/")
        self.is_local = isinstance(self.fs, pafs.LocalFileSystem)
        self.where = self.root if self.is_local else text
        """As another process would open it; absolute."""

    def full(self, path: str) -> str:
        """The path of a file as its filesystem takes it."""
        return f"{self.root}/{path}" if path else self.root

    def read(self, path: str) -> bytes:
        """All bytes of a file.

        Raises:
            FileNotFoundError: it is not there.
            TableError: the storage refused it.
        """
        try:
            with self.fs.open_input_file(self.full(path)) as source:
                return bytes(source.read())
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise self._refused(path, error) from error

    def exists(self, path: str) -> bool:
        """Whether a file or folder of that name is there."""
        return bool(self.fs.get_file_info(self.full(path)).type != pafs.FileType.NotFound)

    def files(self, path: str = "") -> list[File]:
        """All files below a subfolder, sorted by path; none when it does not exist.

        Raises:
            TableError: the storage refused to list them.
        """
        selector = pafs.FileSelector(self.full(path), recursive=True, allow_not_found=True)
        for tries_left in reversed(range(_TRIES)):
            try:
                found = self.fs.get_file_info(selector)
                break
            except FileNotFoundError as error:  # a folder came or went while pyarrow walked
                if not tries_left:
                    raise self._refused(path, error) from error
            except (OSError, pa.ArrowException) as error:
                raise self._refused(path, error) from error
        files = (
            File(info.path[len(self.root) + 1 :], info.size, info.mtime)
            for info in found
            if info.type == pafs.FileType.File
        )
        return sorted(files, key=lambda file: file.path)

    def _refused(self, path: str, error: Exception) -> TableError:
        return TableError(
            f"cannot read {self.full(path)}: {str(error).strip()}. "
            "Check the storage and your access to it."
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Commits that were taken together: `name` is their folder, `n` how many, sorted out once."""

    name: str
    n: int

    def path(self, table: str) -> str:
        """Where one of its tables lies."""
        return f"tables/{self.name}/{table}.parquet"


@dataclass(frozen=True, slots=True)
class Current:
    """The parts that count, oldest first, and how often that has changed."""

    generation: int = 0
    parts: tuple[Part, ...] = ()

    def to_json(self) -> str:
        """As `tables/CURRENT.json` holds it."""
        parts = [{"name": part.name, "n": part.n} for part in self.parts]
        return json.dumps({"version": 1, "generation": self.generation, "parts": parts}, indent=1)

    @classmethod
    def read(cls, folder: Folder) -> Self:
        """Read it; empty when nothing has been compacted yet.

        Raises:
            TableError: it is not what we write.
        """
        try:
            text = folder.read(CURRENT)
        except FileNotFoundError:
            return cls()
        try:
            content = json.loads(text)
            parts = tuple(Part(str(part["name"]), int(part["n"])) for part in content["parts"])
            current = cls(int(content["generation"]), parts)
            version = content["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise TableError(
                f"{folder.where}/{CURRENT}: not a list of parts ({error}). Restore it from a copy."
            ) from error
        if version != 1:
            raise TableError(
                f"{folder.where}/{CURRENT}: version {version}; this xling-sweep reads version 1. "
                "Read the store with the xling-sweep that wrote it."
            )
        return current


def read_part(
    folder: Folder,
    part: Part,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    trial_ids: pa.Array | None = None,
) -> pa.Table:
    """Read one table of a part.

    Args:
        folder: The store.
        part: One of `Current.parts`.
        table: Name in `analysis.schema`.
        columns: Only these, text dictionary-encoded; None for all, as the schema has them.
        trial_ids: Only these trials; None for all.

    Raises:
        FileNotFoundError: a later compaction has replaced the part; look at CURRENT again. Or it
            is a table of `ASIDE`, and the part has none of it.
        TableError: the file is torn, foreign or of another version.
    """
    path = part.path(table)
    data, name, schema = folder.read(path), f"{folder.where}/{path}", EVERY[table]
    texts = [field.name for field in schema if field.type == pa.string()]
    file = open_parquet(data, name, dictionary=texts)  # a tenth of the memory
    wanted = None if columns is None else [c for c in columns if c in file.schema_arrow.names]
    rows = read_all(file, name, len(data), wanted)
    if trial_ids is not None:
        is_wanted = pc.is_in(rows.column("trial_id"), trial_ids)
        if not pc.all(is_wanted).as_py():  # else millions of rows would be copied
            rows = rows.filter(is_wanted)
    if columns is None:
        return conform(rows, schema, name)
    for column in columns:
        if column not in rows.column_names:  # written before there was such a column
            rows = rows.append_column(column, pa.nulls(len(rows), schema.field(column).type))
    return rows.select(list(columns)).unify_dictionaries()


def commit_ids(files: Iterable[File], said: set[str] | None = None) -> dict[str, File]:
    """Commit id -> file, for files that are named as commits are; others are warned about.

    Args:
        files: All below `commits`.
        said: Paths that were warned about already, for callers that look again and again.
    """
    said = set() if said is None else said
    found = {}
    for file in files:
        match = COMMIT_NAME.fullmatch(file.path)
        if match:
            found[match[1]] = file
        elif file.path not in said:
            said.add(file.path)
            log.warning("%s is not a commit and is ignored", file.path)
    return found


@dataclass(frozen=True, slots=True)
class Loose:
    """Commits as read: their tables, the ids that were whole, and the files that were not."""

    tables: Mapping[str, pa.Table]
    ids: frozenset[str]
    bad: tuple[File, ...]


def read_commits(folder: Folder, commits: Mapping[str, File], *, whole: bool = False) -> Loose:
    """Read commits, files in parallel; a torn or foreign one is named in a warning and left alone.

    Args:
        folder: The store.
        commits: Commit id -> file.
        whole: Read the tables of `schema.ASIDE` as well.

    Raises:
        FileNotFoundError: a compaction has taken one in; look at CURRENT again.
    """
    items = sorted(commits.items())
    pieces: list[Mapping[str, pa.Table]] = []
    ids: set[str] = set()
    bad: list[File] = []
    with ThreadPoolExecutor(min(_THREADS, max(1, len(items)))) as pool:
        for start in range(0, len(items), _BATCH):
            batch = items[start : start + _BATCH]
            good: list[pa.Table] = []
            # Only the reading waits for anything. To decode in many threads gains nothing, and
            # takes the interpreter from whoever shares it: a driver that hands out trials.
            contents = pool.map(folder.read, [file.path for _, file in batch])
            for (commit_id, file), data in zip(batch, contents, strict=True):
                try:
                    good.append(decode_commit(data, commit_id, file.path, whole=whole))
                except TableError as error:
                    log.warning("%s. The job counts as not done.", error)
                    bad.append(file)
                else:
                    ids.add(commit_id)
            if good:
                pieces.append(explode(pa.concat_tables(good)))
    return Loose(concat(pieces, EVERY if whole else TABLES), frozenset(ids), tuple(bad))


def decode_commit(data: bytes, commit_id: str, path: str, *, whole: bool = False) -> pa.Table:
    """Read one commit: one row of `COMMIT` or `WHOLE` that bears the id its file is named after.

    Raises:
        TableError: anything else.
    """
    table = decode(data, WHOLE if whole else COMMIT, path)
    if table.column("commit_id").to_pylist() != [commit_id]:
        raise TableError(f"{path}: holds another commit than its name says. Move it elsewhere")
    return table


def concat(
    pieces: Sequence[Mapping[str, pa.Table]], empty: Collection[str] = TABLES.keys()
) -> dict[str, pa.Table]:
    """Put the tables of several pieces one after another.

    Args:
        pieces: Tables by name, the same names in each.
        empty: Names of the tables if there are no pieces.
    """
    names = pieces[0].keys() if pieces else empty
    return {
        name: pa.concat_tables(
            # Without batches: an empty array would load pandas.
            [piece[name] for piece in pieces] or [pa.Table.from_batches([], EVERY[name])]
        ).unify_dictionaries()
        for name in names
    }
