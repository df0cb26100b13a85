"""Tables as parquet bytes and back: checked columns, a version, and checksums against torn files.

A *commit* is one row: the columns of `trials`, and the trial's rows of the other tables as nested
lists. So a trial becomes visible whole or not at all.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.schema import ASIDE, EVERY, TRIALS, VERSION

NESTED = ("scores", "similarity", "curves")
"""Tables whose rows every commit carries as lists."""

OWNERS = ("trial_id", "commit_id")
"""Columns that every table has, and that nested rows inherit from their commit."""


class TableError(Exception):
    """A table file is torn, foreign or of another version: says which, what, how to mend it."""


def _rows_of(name: str) -> pa.DataType:
    struct = pa.struct([field for field in EVERY[name] if field.name not in OWNERS])
    return pa.list_(pa.field("element", struct, nullable=False))


COMMIT = pa.schema([*TRIALS, *(pa.field(name, _rows_of(name), nullable=False) for name in NESTED)])
"""Columns of a commit file that every reader needs."""

WHOLE = pa.schema([*COMMIT, *(pa.field(name, _rows_of(name)) for name in ASIDE)])
"""All columns that a commit file may have; those of `ASIDE` are null where there is nothing."""

_MARK = b"xling-sweep"


def encode(table: pa.Table) -> bytes:
    """Parquet of a big table: compressed well, with statistics for other people's tools."""
    sink = pa.BufferOutputStream()
    with table_writer(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_writer(sink: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    """A parquet writer that marks the file as ours and guards each page by a checksum."""
    return pq.ParquetWriter(
        sink, schema.with_metadata(_marked()), compression="zstd", write_page_checksum=True
    )


def encode_commit(
    row: Mapping[str, Any], nested: Mapping[str, Sequence[Mapping[str, Any]]]
) -> bytes:
    """Parquet of one commit.

    Tuned for one row: dictionaries, statistics and the Arrow schema would be most of the file.

    Args:
        row: Columns of `trials`; absent ones are null.
        nested: Rows of the other tables, less the owner columns.
    """
    whole = {**row, **{name: list(nested.get(name, ())) for name in NESTED}}
    aside = {name: list(nested[name]) for name in ASIDE if nested.get(name)}
    schema = WHOLE if aside else COMMIT  # columns of nothing would cost a kilobyte
    table = pa.Table.from_pylist([whole | aside], schema=schema)
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink,
        schema,
        use_dictionary=False,
        write_statistics=False,
        compression="zstd" if aside else "snappy",  # bulk is worth the slower one
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(_marked())  # store_schema=False leaves the schema's own out
    return sink.getvalue()


def _marked() -> dict[bytes, bytes]:
    return {_MARK: str(VERSION).encode()}


def open_parquet(data: bytes, name: str, *, dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """Open the parquet file that `data` holds, and check that it is ours.

    Args:
        data: The whole file.
        name: Where it came from, for messages.
        dictionary: String columns to leave dictionary-encoded, which saves much memory.

    Raises:
        TableError: it is torn, foreign or of another version.
    """
    try:
        about, there = None, set[str]()
        if dictionary:  # an older file lacks newer columns
            about = pq.read_metadata(pa.BufferReader(data))
            there = set(about.schema.to_arrow_schema().names)
        file = pq.ParquetFile(
            pa.BufferReader(data),
            metadata=about,
            page_checksum_verification=True,
            read_dictionary=[column for column in dictionary if column in there] or None,
        )
        found = (file.metadata.metadata or {}).get(_MARK)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise torn(name, len(data), error) from error
    if found is None:
        raise TableError(
            f"{name}: no table of xling-sweep (columns {', '.join(file.schema_arrow.names[:5])} "
            "...). Move it elsewhere."
        )
    if found != _marked()[_MARK]:
        raise TableError(
            f"{name}: tables of version {found.decode(errors='replace')}; this xling-sweep reads "
            f"version {VERSION}. Read it with the xling-sweep that wrote it."
        )
    return file


def torn(name: str, size: int, error: Exception) -> TableError:
    """The error for a file that cannot be read."""
    reason = str(error).strip() or type(error).__name__
    return TableError(
        f"{name}: torn or not parquet ({size} bytes: {reason}). "
        "Restore it from a copy, or move it elsewhere and run the study again."
    )


def decode(data: bytes, schema: pa.Schema, name: str) -> pa.Table:
    """Read a table and give it exactly the columns of `schema`; others are not even unpacked.

    Raises:
        TableError: the file is torn, foreign, of another version, or lacks columns.
    """
    file = open_parquet(data, name)
    there = set(file.schema_arrow.names)
    wanted = [column for column in schema.names if column in there]
    columns = None if len(wanted) == len(there) else wanted  # to choose all takes its time too
    return conform(read_all(file, name, len(data), columns), schema, name)


def read_all(
    file: pq.ParquetFile, name: str, size: int, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read an open file; torn pages show only now.

    Raises:
        TableError: it is torn.
    """
    try:
        return file.read(columns=columns, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise torn(name, size, error) from error


def read_group(file: pq.ParquetFile, group: int, name: str, size: int) -> pa.Table:
    """Read one row group of an open file.

    Raises:
        TableError: it is torn.
    """
    try:
        return file.read_row_group(group, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise torn(name, size, error) from error


def conform(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """Give a table the columns of `schema`: absent nullable ones null, unknown ones dropped.

    Raises:
        TableError: a column that must be there is not, or has another type.
    """
    if table.schema.equals(schema):
        return table.replace_schema_metadata(None)
    columns = []
    for field in schema:
        if field.name in table.column_names:
            columns.append(_cast(table.column(field.name), field, name))
        elif field.nullable:
            columns.append(pa.nulls(len(table), field.type))
        else:
            raise TableError(
                f"{name}: column '{field.name}' is missing (found {', '.join(table.column_names)})."
                " It was not written by this xling-sweep; move it elsewhere."
            )
    return pa.table(columns, schema=schema)


def _cast(column: pa.ChunkedArray, field: pa.Field, name: str) -> pa.ChunkedArray:
    try:
        if pa.types.is_list(field.type) and pa.types.is_list(column.type):
            # Nested rows of a version with other nullable columns: by name, one by one.
            known = {inner.name for inner in field.type.value_type}
            rows = [
                [{key: value for key, value in row.items() if key in known} for row in rows]
                for rows in column.to_pylist()
            ]
            return pa.chunked_array([pa.array(rows, field.type)])
        return column.cast(field.type)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise TableError(
            f"{name}: column '{field.name}' is {column.type}, not {field.type}. "
            "It was not written by this xling-sweep; move it elsewhere."
        ) from error


def explode(commits: pa.Table) -> dict[str, pa.Table]:
    """Split commits into their tables.

    Args:
        commits: Rows of `COMMIT` or of `WHOLE`.
    """
    commits = commits.combine_chunks()
    tables = {"trials": commits.select(TRIALS.names).cast(TRIALS)}
    for name in (*NESTED, *(name for name in ASIDE if name in commits.column_names)):
        schema = EVERY[name]
        lists = commits.column(name)
        rows = pc.list_flatten(lists)
        owner = pc.list_parent_indices(lists)
        inherited = [commits.column(column).take(owner) for column in OWNERS]
        own = [pc.struct_field(rows, [field.name]) for field in schema if field.name not in OWNERS]
        tables[name] = pa.table([*inherited, *own], schema=schema)
    return tables
