"""The four tables of a store or a folder: read, checked, each measurement once."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from analysis.layout import (
    CURRENT,
    Current,
    Folder,
    commit_ids,
    concat,
    read_commits,
    read_part,
)
from analysis.rowfiles import TableError, decode, encode
from analysis.schema import TABLES

NATURAL: Mapping[str, tuple[str, ...]] = {
    "scores": ("trial_id", "split", "data_key", "treebank", "metric"),
    "similarity": ("trial_id", "state", "source_key", "target_key", "layer", "measure"),
    "curves": ("trial_id", "epoch"),
}
"""Columns that name a measurement; two rows that agree in them measured the same thing."""

_RANKS = {"done": 0, "pruned": 1, "failed": 2}
TRIES = 5
"""Looks at a store that is compacted meanwhile, before parts count as missing."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of some trials, as `analysis.schema` describes them.

    Attributes:
        trials: One row a job: how it ended in the end.
        scores: What its model scored.
        similarity: How alike languages are in its states.
        curves: How it trained.
    """

    trials: pa.Table
    scores: pa.Table
    similarity: pa.Table
    curves: pa.Table

    def of(self, trial_ids: Collection[str]) -> Self:
        """Only the rows of these trials."""
        wanted = pa.array(sorted(trial_ids), pa.string())
        return type(self)(
            **{
                name: table.filter(pc.is_in(table.column("trial_id"), wanted))
                for name, table in self.by_name().items()
            }
        )

    def by_name(self) -> dict[str, pa.Table]:
        """The tables by their names in `analysis.schema`."""
        return {name: getattr(self, name) for name in TABLES}


def read_tables(where: str | Path, trial_ids: Collection[str] | None = None) -> Tables:
    """Read a result store, or a folder of four parquet files as `write_tables` leaves it.

    Args:
        where: Local path or URI of `pyarrow.fs`.
        trial_ids: Only these trials; None for all.

    Raises:
        TableError: nothing of ours is there, or a file is torn, foreign or of another version.
            A torn commit is no such file: it is named in a warning and counts as not done.
    """
    folder = Folder(where)
    if folder.exists("commits") or folder.exists(CURRENT):
        found = _read_store(folder)
    elif folder.exists("trials.parquet"):
        found = {
            name: decode(_read(folder, f"{name}.parquet"), schema, f"{where}/{name}.parquet")
            for name, schema in TABLES.items()
        }
    else:
        raise TableError(
            f"{where}: neither a result store (commits/, tables/) nor a folder of tables "
            "(trials.parquet). Give the storage of the study; `sweep run` fills it."
        )
    tables = Tables(**deduplicate(found))
    return tables if trial_ids is None else tables.of(trial_ids)


def write_tables(tables: Tables, folder: str | Path) -> None:
    """Write four parquet files, for people and other tools; the folder is made if need be."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, table in tables.by_name().items():
        (Path(folder) / f"{name}.parquet").write_bytes(encode(table))


def _read(folder: Folder, path: str) -> bytes:
    try:
        return folder.read(path)
    except FileNotFoundError as error:
        raise TableError(
            f"{folder.where}/{path}: missing. "
            f"The folder needs {', '.join(TABLES)}, each as .parquet."
        ) from error


def _read_store(folder: Folder) -> dict[str, pa.Table]:
    for _ in range(TRIES):
        # In this order no commit is missed: one that is gone from the list is in the parts.
        files = commit_ids(folder.files("commits"))
        current = Current.read(folder)
        try:
            pieces: list[Mapping[str, pa.Table]] = [
                {name: read_part(folder, part, name) for name in TABLES} for part in current.parts
            ]
            known = {i for piece in pieces for i in piece["trials"].column("commit_id").to_pylist()}
            new = {i: file for i, file in files.items() if i not in known}
            return stack([*pieces, read_commits(folder, new).tables])
        except FileNotFoundError:
            continue  # compacted under our eyes
    raise vanished(folder, current)


def vanished(folder: Folder, current: Current) -> TableError:
    """The error for a part that CURRENT names and nobody finds, however often one looks."""
    names = ", ".join(part.name for part in current.parts)
    return TableError(
        f"{folder.where}/tables: CURRENT.json names parts {names}, and files of them are missing. "
        "Restore the folder from a copy."
    )


def stack(pieces: Iterable[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Put pieces one after another; a commit that several hold counts in the first alone."""
    seen: set[str] = set()
    kept: list[Mapping[str, pa.Table]] = []
    for piece in pieces:
        ids = set(piece["trials"].column("commit_id").to_pylist())
        again = seen & ids
        kept.append(without(piece, again) if again else piece)
        seen |= ids
    return concat(kept)


def without(piece: Mapping[str, pa.Table], commits: Collection[str]) -> dict[str, pa.Table]:
    """Drop the rows of some commits."""
    unwanted = pa.array(sorted(commits), pa.string())
    return {
        name: table.filter(pc.invert(pc.is_in(table.column("commit_id"), unwanted)))
        for name, table in piece.items()
    }


def job_of(commit_id: str) -> str:
    """The job that a commit is about: `<job>`, `<job>.pruned-1`, `<job>.failed-2-ab12cd34`."""
    return commit_id.partition(".")[0]


def deduplicate(found: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Keep how each job ended in the end, and each measurement once.

    A whole result supersedes a pruned one, and that failures, of which the last one stays. Rows
    come out ordered by commit id, so equal results give equal tables whatever came first.

    Args:
        found: `trials`, whose commit ids are unique, and any of the other tables.
    """
    trials = found["trials"]
    final = _final_rows(trials)
    trials = trials.take(pa.array(final, pa.int64()))
    order = pa.array(trials.column("commit_id").to_pylist(), pa.string())
    tables = {"trials": trials.combine_chunks()}
    several = _trials_of_several(trials)
    for name in found.keys() & NATURAL.keys():
        rows = _in_order(found[name], order)
        tables[name] = _first_of_each(rows, NATURAL[name], several) if several else rows
    return tables


def _final_rows(trials: pa.Table) -> list[int]:
    """Index of the row that says how each job ended, ordered by commit id."""
    ids = trials.column("commit_id").to_pylist()
    status = trials.column("status").to_pylist()
    finished = trials.column("finished").cast(pa.int64()).to_pylist()
    best: dict[str, tuple[tuple[int, int, str], int]] = {}
    for index, commit_id in enumerate(ids):
        key = (_RANKS.get(status[index], 3), -(finished[index] or 0), commit_id)
        job = job_of(commit_id)
        if job not in best or key < best[job][0]:
            best[job] = (key, index)
    return sorted((index for _, index in best.values()), key=lambda index: ids[index])


def _trials_of_several(trials: pa.Table) -> list[str]:
    """Trials that several whole commits measured, where a measurement may be there twice."""
    done = trials.filter(pc.equal(trials.column("status"), "done"))
    counts = done.group_by("trial_id").aggregate([([], "count_all")])
    many = counts.filter(pc.greater(counts.column("count_all"), 1))
    ids: list[str] = many.column("trial_id").to_pylist()
    return ids


def _in_order(rows: pa.Table, commits: pa.Array) -> pa.Table:
    """The rows of these commits, in the order of the commits and else as they are."""
    ranks = _ranks(rows.column("commit_id"), commits)
    if (ranks < 0).any():
        rows, ranks = rows.filter(pa.array(ranks >= 0)), ranks[ranks >= 0]
    if (ranks[1:] >= ranks[:-1]).all():
        return rows  # as a compaction leaves them: millions of rows are not copied
    order = ranks.argsort(kind="stable")
    return rows.combine_chunks().take(pa.array(order))


def _ranks(ids: pa.ChunkedArray, commits: pa.Array) -> Int[np.ndarray, " rows"]:
    """Place of each row's commit among these; -1 for none of them."""
    parts = []
    for chunk in ids.chunks:
        if pa.types.is_dictionary(chunk.type):  # a look at each commit, not at each row
            known = pc.fill_null(pc.index_in(chunk.dictionary, commits), -1).to_numpy()
            parts.append(known[chunk.indices.to_numpy()])
        else:
            parts.append(pc.fill_null(pc.index_in(chunk, commits), -1).to_numpy())
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def _first_of_each(rows: pa.Table, natural: tuple[str, ...], trials: list[str]) -> pa.Table:
    """Drop rows that measured again what an earlier row of these trials did."""
    index = pa.array(range(len(rows)), pa.int64())
    doubtful = pc.is_in(rows.column("trial_id"), pa.array(trials, pa.string()))
    numbered = rows.append_column("index", index)
    suspects = numbered.filter(doubtful).select([*natural, "index"])
    first = suspects.group_by(list(natural)).aggregate([("index", "min")]).column("index_min")
    keep = pc.or_(pc.invert(doubtful), pc.is_in(numbered.column("index"), first))
    return rows.filter(keep).combine_chunks()
