import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import schema
from analysis.rowfiles import COMMIT, TableError, decode, encode, encode_commit, explode
from analysis.tables import Tables, read_tables, stack, write_tables


def trial(commit, **fields):
    """One row of `trials`, with the columns that must be there."""
    row = {
        field.name: 0 if pa.types.is_integer(field.type) else ""
        for field in schema.TRIALS
        if not field.nullable
    }
    ended = {"finished": datetime(2026, 1, 2, tzinfo=UTC)}
    owner = {"trial_id": commit.partition("+")[0].partition(".")[0], "commit_id": commit}
    return row | owner | {"kind": "train", "status": "done"} | ended | fields


def score(treebank, value, split="test"):
    return {
        "split": split,
        "treebank": treebank,
        "language": treebank[:2],
        "data_key": f"sha256:{treebank}",
        "metric": "upos",
        "value": value,
        "n": 10,
    }


def put(folder, commit, scores=(), **fields):
    path = folder / "commits" / commit[:2] / f"{commit}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_commit(trial(commit, **fields), {"scores": list(scores)}))
    return path


def values(tables):
    return [(row["trial_id"], row["treebank"], row["value"]) for row in tables.scores.to_pylist()]


def test_tables_have_the_columns_of_the_schema(tmp_path):
    """Whatever was committed, the four tables have exactly the columns of the schema."""
    put(tmp_path, "aa11", [score("de_pud", 0.5)])
    for name, table in read_tables(tmp_path).by_name().items():
        assert table.schema.equals(schema.TABLES[name])


def test_rows_do_not_depend_on_the_order_of_commits(tmp_path):
    """Two stores that got the same commits in another order give equal tables."""
    commits = {"bb22": 0.25, "aa11": 0.5, "cc33": 0.75}
    for folder, order in (("one", sorted(commits)), ("two", sorted(commits, reverse=True))):
        for commit in order:
            put(tmp_path / folder, commit, [score("de_pud", commits[commit])])
    assert read_tables(tmp_path / "one") == read_tables(tmp_path / "two")
    assert [value for *_, value in values(read_tables(tmp_path / "one"))] == [0.5, 0.25, 0.75]


def test_of_keeps_only_those_trials(tmp_path):
    """Tables restricted to some trials hold all rows of these and none of others."""
    for commit in ("aa11", "bb22", "bb22+99"):
        put(tmp_path, commit, [score(f"{commit[:2]}_x{len(commit)}", 0.5)])
    some = read_tables(tmp_path).of({"bb22", "unknown"})
    assert values(some) == [("bb22", "bb_x4", 0.5), ("bb22", "bb_x7", 0.5)]
    assert some.trials.column("commit_id").to_pylist() == ["bb22", "bb22+99"]
    assert read_tables(tmp_path, {"bb22"}) == some
    assert len(read_tables(tmp_path, set()).trials) == 0


def test_done_supersedes_pruned_and_failed(tmp_path):
    """Of all commits of a job the whole result counts, then a pruned one, then the last failure."""
    put(tmp_path, "aa11.failed-1-ab", status="failed", failure="old")
    put(tmp_path, "aa11.pruned-1", status="pruned")
    put(tmp_path, "aa11", [score("de_pud", 0.5)], finished=datetime(2025, 1, 1, tzinfo=UTC))
    put(tmp_path, "bb22.pruned-1", status="pruned")
    put(tmp_path, "bb22.failed-1-cd", status="failed", failure="new")
    late = datetime(2027, 1, 1, tzinfo=UTC)
    put(tmp_path, "cc33.failed-1-ef", status="failed", failure="last", finished=late)
    put(tmp_path, "cc33.failed-2-01", status="failed", failure="first")
    rows = read_tables(tmp_path).trials.to_pylist()
    assert [(row["commit_id"], row["failure"]) for row in rows] == [
        ("aa11", None),
        ("bb22.pruned-1", None),
        ("cc33.failed-1-ef", "last"),
    ]


def test_measurement_counts_once_and_the_trials_own_first(tmp_path):
    """A target that the trial and a later job both scored has the trial's value, once."""
    put(tmp_path, "aa11+99", [score("de_pud", 0.75), score("ru_pud", 0.25)], kind="measure")
    put(tmp_path, "aa11", [score("de_pud", 0.5), score("de_pud", 0.125, split="dev")])
    assert values(read_tables(tmp_path)) == [
        ("aa11", "de_pud", 0.5),
        ("aa11", "de_pud", 0.125),
        ("aa11", "ru_pud", 0.25),
    ]


def test_commit_in_two_pieces_counts_in_the_first(tmp_path):
    """A commit that lies in a part and still as a file gives its rows once."""
    one = explode(decode(put(tmp_path, "aa11", [score("x", 0.5)]).read_bytes(), COMMIT, "one"))
    two = explode(decode(put(tmp_path, "aa11", [score("x", 0.75)]).read_bytes(), COMMIT, "two"))
    both = stack([one, two])
    assert both["scores"].column("value").to_pylist() == [0.5]
    assert len(both["trials"]) == 1


def test_folder_of_tables_round_trips(tmp_path):
    """Tables written as four files read back equal."""
    put(tmp_path / "store", "aa11", [score("de_pud", 0.5)])
    tables = read_tables(tmp_path / "store")
    write_tables(tables, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        f"{name}.parquet" for name in schema.TABLES
    )
    assert read_tables(tmp_path / "out") == tables


@pytest.mark.parametrize("content", [None, "empty", "file"])
def test_place_without_tables_is_refused(tmp_path, content):
    """A folder without our files, an absent one and a plain file are refused with what to give."""
    where = tmp_path / "x"
    if content == "empty":
        where.mkdir()
    elif content == "file":
        where.write_text("not a folder")
    with pytest.raises(TableError, match="neither a result store"):
        read_tables(where)


def test_absent_table_is_named(tmp_path):
    """A folder that lacks one of the four files is refused with that file's name."""
    put(tmp_path / "store", "aa11")
    write_tables(read_tables(tmp_path / "store"), tmp_path / "out")
    (tmp_path / "out" / "curves.parquet").unlink()
    with pytest.raises(TableError, match=r"curves\.parquet: missing"):
        read_tables(tmp_path / "out")


def test_truncated_table_is_refused_at_every_length(tmp_path):
    """A table cut at any tenth of its length is refused with its name and what to do."""
    put(tmp_path / "store", "aa11", [score("de_pud", 0.5)])
    write_tables(read_tables(tmp_path / "store"), tmp_path)
    path = tmp_path / "scores.parquet"
    whole = path.read_bytes()
    for tenth in range(10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        with pytest.raises(TableError, match=r"scores\.parquet: torn or not parquet"):
            read_tables(tmp_path)


def test_table_of_another_version_is_refused(monkeypatch):
    """A table of a later version names both versions, instead of giving wrong numbers."""
    table = schema.CURVES.empty_table()
    monkeypatch.setattr("analysis.rowfiles.VERSION", 2)
    data = encode(table)
    monkeypatch.undo()
    with pytest.raises(TableError, match=r"x: tables of version 2; .* version 1"):
        decode(data, schema.CURVES, "x")


def test_foreign_parquet_is_refused(tmp_path):
    """A parquet file that we did not write is refused."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(TableError, match="no table of xling-sweep"):
        decode((tmp_path / "x.parquet").read_bytes(), schema.CURVES, "x")


def test_lacking_column_is_named():
    """A table without a column that must be there is refused with the column's name."""
    data = encode(schema.CURVES.empty_table().drop_columns(["loss"]))
    with pytest.raises(TableError, match="column 'loss' is missing"):
        decode(data, schema.CURVES, "x")


def test_column_of_another_type_is_named():
    """A column that cannot be what the schema says is refused with both types."""
    index = schema.SCORES.get_field_index("value")
    wrong = schema.SCORES.set(index, pa.field("value", pa.string(), nullable=False))
    row = {"trial_id": "a", "commit_id": "a"} | score("de_pud", 0.5) | {"value": "high"}
    with pytest.raises(TableError, match="'value' is string, not double"):
        decode(encode(pa.Table.from_pylist([row], schema=wrong)), schema.SCORES, "x")


def test_nullable_columns_may_come_and_go():
    """A table without a nullable column gets nulls, and one that we do not know is dropped."""
    full = pa.Table.from_pylist([trial("aa11", device="cpu")], schema=schema.TRIALS)
    other = full.drop_columns(["device"]).append_column("mood", pa.array(["fine"]))
    read = decode(encode(other), schema.TRIALS, "x")
    assert read.schema.equals(schema.TRIALS)
    assert read.column("device").to_pylist() == [None]


def test_damaged_list_of_parts_is_refused(tmp_path):
    """A CURRENT.json that is no list of parts, or of a later version, is refused with its name."""
    (tmp_path / "tables").mkdir()
    for text in ("{", "[]", json.dumps({"version": 9, "generation": 1, "parts": []})):
        (tmp_path / "tables" / "CURRENT.json").write_text(text)
        with pytest.raises(TableError, match=r"CURRENT\.json"):
            read_tables(tmp_path)


def test_torn_commit_is_named_and_left_out(tmp_path, caplog):
    """A torn commit is named in a warning; the others are read, and it stays on disk."""
    put(tmp_path, "aa11", [score("de_pud", 0.5)])
    torn = put(tmp_path, "bb22")
    torn.write_bytes(torn.read_bytes()[:500])
    assert len(read_tables(tmp_path).trials) == 1
    assert "bb22.parquet" in caplog.text
    assert torn.stat().st_size == 500


def test_tables_are_four():
    """`Tables` has the tables of the schema, by the same names."""
    empty = Tables(**{name: table.empty_table() for name, table in schema.TABLES.items()})
    assert list(empty.by_name()) == list(schema.TABLES)
