import itertools
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import store_samples as make

from analysis.layout import CURRENT, Current
from analysis.schema import TABLES
from analysis.tables import read_tables
from sweep.commit import commit_path
from sweep.compact import LEFTOVER_AGE, compact
from sweep.ledger import Ledger
from sweep.lock import StoreLockedError
from sweep.storage import StorageError, Store

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def fill(store, seeds):
    return [
        make.commit(make.job(store.where, make.targets("de_pud"), make.spec(seed)))
        for seed in seeds
    ]


def rows(store):
    """All rows of a store, by table."""
    return {name: table.to_pylist() for name, table in read_tables(store.where).by_name().items()}


def test_compaction_moves_commits_into_tables(store):
    """After a compaction there are no commit files, and the rows are what they were."""
    fill(store, range(5))
    before = rows(store)
    done = compact(store)
    assert (done.absorbed, done.parts, done.ignored) == (5, 1, ())
    assert store.files("commits") == []
    assert rows(store) == before
    assert len(before["scores"]) == 10


def test_a_store_from_before_a_column_was_added_is_read(store):
    """Tables that lack every column that may be empty are read, with those columns empty."""
    make.commit(make.job(store.where, make.targets("de_pud")))
    compact(store)
    for name, schema in TABLES.items():
        path = Current.read(store).parts[0].path(name)
        rows = pq.read_table(store.full(path))
        older = rows.select([field.name for field in schema if not field.nullable])
        pq.write_table(older, store.full(path))
    trial = read_tables(store.where).trials.to_pylist()[0]
    assert (trial["task"], trial["host"], trial["attempt"]) == ("upos", None, 1)
    assert len(Ledger(store.where).table("scores")) == len(
        make.result(make.targets("de_pud")).scores
    )


def test_nothing_new_changes_nothing(store):
    """A compaction without new commits leaves CURRENT and parts as they are."""
    fill(store, range(3))
    compact(store)
    before = store.files()
    assert compact(store).absorbed == 0
    assert store.files() == before


def test_empty_store_stays_empty(store):
    """Compacting a store that does not exist makes no files."""
    assert compact(store).parts == 0
    assert store.files() == []


def test_parts_grow_geometrically(store):
    """After 40 compactions of one commit each, parts are few and each twice the next."""
    for seed in range(40):
        fill(store, [seed])
        compact(store)
    sizes = [part.n for part in Current.read(store).parts]
    assert sum(sizes) == 40
    assert all(one > 2 * other for one, other in itertools.pairwise(sizes))
    assert len({file.path.split("/")[1] for file in store.files("tables")}) == len(sizes) + 1
    assert len(rows(store)["trials"]) == 40


def test_torn_commit_is_left_where_it_is(store):
    """A torn commit is reported, not absorbed and not deleted."""
    (whole,) = fill(store, [1])
    store.publish("commits/ab/abtorn.parquet", store.read(commit_path(whole))[:100])
    done = compact(store)
    assert (done.absorbed, done.ignored) == (1, ("commits/ab/abtorn.parquet",))
    assert [file.path for file in store.files("commits")] == ["commits/ab/abtorn.parquet"]


class KilledError(Exception):
    """Stands for a kill at this point."""


def mortal(where, lives):
    """A store whose process dies right before one of its visible changes."""
    store, left = Store(where), [lives]

    def spend(change):
        def changed(*arguments):
            if left[0] == 0:
                raise KilledError
            left[0] -= 1
            return change(*arguments)

        return changed

    for name in ("publish", "delete", "delete_folder"):
        setattr(store, name, spend(getattr(store, name)))
    return store


def test_death_at_any_step_loses_and_doubles_nothing(tmp_path):
    """Killed before any of its visible steps, a compaction leaves all rows, each once."""
    steps, deaths = 0, 0
    while True:
        store = Store(tmp_path / str(steps))
        fill(store, range(4))
        compact(store)
        fill(store, range(4, 7))
        before = rows(store)
        try:
            compact(mortal(store.where, steps))
        except KilledError:
            deaths += 1
        else:
            break
        finally:
            assert rows(store) == before
            assert len(before["trials"]) == 7
        compact(store)
        assert rows(store) == before
        assert store.files("commits") == []
        steps += 1
    assert deaths == 4 + 1 + 1 + 3  # parts' tables, CURRENT, the replaced part, commits


def test_leftovers_go_when_they_are_old(store):
    """Tables of a killed compaction are deleted once they are old, and not before."""
    fill(store, range(3))
    with pytest.raises(KilledError):
        compact(mortal(store.where, 2))
    half = {file.path for file in store.files("tables")}
    assert len(half) == 2
    compact(store)
    assert half <= {file.path for file in store.files("tables")}
    compact(store, now=datetime.now(UTC) + LEFTOVER_AGE + timedelta(minutes=1))
    assert not half & {file.path for file in store.files("tables")}
    assert len(rows(store)["trials"]) == 3


def test_second_compactor_notices_the_first(store):
    """When CURRENT changes under a compaction, it stops before anything is replaced."""
    fill(store, range(3))
    other = Store(store.where)
    calls = []

    def check():
        calls.append(None)
        if len(calls) == 2:
            compact(other)

    with pytest.raises(StorageError, match="somebody else"):
        compact(store, check=check)
    assert len(rows(store)["trials"]) == 3


def test_lost_lock_stops_before_current(store):
    """A compaction whose lock is lost on the way publishes and deletes nothing."""
    fill(store, range(3))
    calls = []

    def check():
        calls.append(None)
        if len(calls) == 2:
            raise StoreLockedError("taken")

    with pytest.raises(StoreLockedError):
        compact(store, check=check)
    assert not store.exists(CURRENT)
    assert len(store.files("commits")) == 3


@pytest.mark.slow
def test_readers_never_miss_a_commit_while_it_moves(store):
    """A ledger and a report that read during compactions see every commit made before."""
    stop = threading.Event()
    made, problems = [], []

    def drive():
        while not stop.is_set():
            compact(store)

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        ledger = Ledger(store.where)
        for seed in range(25):
            made += fill(store, [seed])
            ledger.refresh()
            seen = set(ledger.table("trials").column("trial_id").to_pylist())
            read = {row["trial_id"] for row in rows(store)["trials"]}
            if seen != set(made) or read != set(made):
                problems.append((seed, len(seen), len(read)))
    finally:
        stop.set()
        driver.join()
    assert problems == []


COMPACT_ON = """
import sys
from sweep.compact import compact
from sweep.storage import Store
store = Store(sys.argv[1])
print("ready", flush=True)
while True:
    compact(store)
"""


@pytest.mark.slow
def test_killed_driver_loses_and_doubles_nothing(store):
    """Compactors killed with -9 while workers commit leave every commit, each once."""
    made = []
    for turn in range(8):
        driver = subprocess.Popen(
            [sys.executable, "-c", COMPACT_ON, store.where],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        driver.stdout.readline()
        made += fill(store, range(10 * turn, 10 * turn + 3 + turn))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
        made += fill(store, range(10 * turn + 3 + turn, 10 * turn + 10))
        found = rows(store)
        assert sorted(row["trial_id"] for row in found["trials"]) == sorted(made)
        assert len(found["scores"]) == 2 * len(made)
    compact(store)
    assert len(rows(store)["trials"]) == 80


@pytest.mark.slow
def test_compaction_on_an_object_store(bucket):
    """On S3 a compaction keeps all rows and deletes the commits it took in."""
    store = Store(bucket)
    fill(store, range(3))
    before = rows(store)
    compact(store)
    fill(store, [3])
    compact(store)
    assert store.files("commits") == []
    assert rows(store)["trials"][:0] + before["trials"] == [
        row for row in rows(store)["trials"] if row in before["trials"]
    ]
    assert len(rows(store)["trials"]) == 4
