"""The bulky tables of a store, read only by who asks for them: counts of single sentences."""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analysis.layout import CURRENT, Current, Folder, commit_ids, read_commits, read_part
from analysis.rowfiles import decode
from analysis.schema import ASIDE, SENTENCES
from analysis.tables import NATURAL, TRIES, vanished


def read_sentences(where: str | Path, trial_ids: Collection[str] | None = None) -> pa.Table:
    """What each sentence adds to the scores of some trials, each measurement once.

    Args:
        where: A result store, or a folder of tables with `sentences.parquet` among them.
        trial_ids: Only these trials; None for all.

    Returns:
        Rows of `schema.SENTENCES`; none where nothing of the kind was stored.

    Raises:
        TableError: a file is torn, foreign or of another version.
    """
    folder, alone = Folder(where), "sentences.parquet"
    wanted = None if trial_ids is None else pa.array(sorted(trial_ids), pa.string())
    if folder.exists(alone):
        rows = _of(decode(folder.read(alone), SENTENCES, f"{where}/{alone}"), wanted)
    elif folder.exists("commits") or folder.exists(CURRENT):
        rows = _read_store(folder, "sentences", wanted)
    else:
        rows = SENTENCES.empty_table()
    return _once(rows)


def _read_store(folder: Folder, name: str, wanted: pa.Array | None) -> pa.Table:
    for _ in range(TRIES):
        files = commit_ids(folder.files("commits"))
        current = Current.read(folder)
        pieces = [ASIDE[name].empty_table()]
        for part in current.parts:
            try:
                pieces.append(read_part(folder, part, name, trial_ids=wanted))
            except FileNotFoundError:
                continue  # the part has none, or was replaced: CURRENT will tell
        try:
            pieces.append(_of(read_commits(folder, files, whole=True).tables[name], wanted))
        except FileNotFoundError:
            continue  # compacted under our eyes
        if Current.read(folder) == current:
            return pa.concat_tables(pieces)
    raise vanished(folder, current)


def _of(rows: pa.Table, wanted: pa.Array | None) -> pa.Table:
    return rows if wanted is None else rows.filter(pc.is_in(rows.column("trial_id"), wanted))


def _once(rows: pa.Table) -> pa.Table:
    """Each measurement once, the first one: it may lie in a part and in a commit left over."""
    keys = list(NATURAL["scores"])
    numbered = rows.select(keys).append_column("row", pa.array(range(len(rows)), pa.int64()))
    first = numbered.group_by(keys, use_threads=False).aggregate([("row", "min")])["row_min"]
    return rows if len(first) == len(rows) else rows.take(first)
