import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from sweep.lock import NAME, DriverLock, Holder, StoreLockedError, born, machine
from sweep.storage import StorageError, Store


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):  # noqa: D102 - it is the clock
        return self.now


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def clock():
    return Clock()


def lock(store, clock):
    """A lock whose heartbeat is called by the test alone."""
    return DriverLock(store, heartbeat_s=10_000.0, dead_after_s=300.0, settle_s=0.0, clock=clock)


def holder(store):
    return Holder(**json.loads(store.read(NAME)))


def put(store, found):
    store.publish(NAME, json.dumps(asdict(found)).encode())


def gone():
    """The pid of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_lock_is_there_while_held(store, clock):
    """The lock's file names this process while it is held, and is gone afterwards."""
    with lock(store, clock) as held:
        held.check()
        assert holder(store).pid == os.getpid()
    assert not store.exists(NAME)
    with pytest.raises(StoreLockedError, match="not held"):
        held.check()


def test_second_driver_stops_with_who_and_since_when(store, clock):
    """A second driver is told host, process, time and how to mend it; the first goes on."""
    with lock(store, clock) as first:
        with pytest.raises(StoreLockedError) as refused:
            lock(store, clock).acquire()
        first.check()
        message = str(refused.value)
        assert f"process {os.getpid()} on {holder(store).host}" in message
        assert "since 1970-01-12 13:46:40 UTC" in message
        assert f"kill -INT {os.getpid()}" in message


def test_lock_of_a_dead_process_is_taken_over(store, clock):
    """On the same machine, the lock of a process that is gone is free at once."""
    with lock(store, clock):
        found = holder(store)
    put(store, replace(found, pid=gone(), beat=clock.now))
    with lock(store, clock) as held:
        held.check()
        assert holder(store).pid == os.getpid()


def test_reused_pid_does_not_hold_the_lock(store, clock):
    """A process that has the dead driver's pid but was born later does not keep the lock."""
    with lock(store, clock):
        found = holder(store)
    put(store, replace(found, born="1"))
    with lock(store, clock) as held:
        held.check()


def test_silent_driver_on_this_machine_still_holds_it(store, clock):
    """A driver here whose heartbeat stalls keeps its lock as long as its process lives."""
    with lock(store, clock):
        clock.now += 10_000
        with pytest.raises(StoreLockedError):
            lock(store, clock).acquire()


def test_other_machine_is_judged_by_its_heartbeat(store, clock):
    """A driver elsewhere holds the lock for five minutes after its last sign of life."""
    with lock(store, clock):
        found = holder(store)
    put(store, replace(found, machine="another boot", host="node7", pid=1))
    clock.now += 299
    with pytest.raises(StoreLockedError, match="node7"):
        lock(store, clock).acquire()
    clock.now += 2
    with lock(store, clock) as held:
        held.check()


def test_heartbeat_renews_the_time(store, clock):
    """Each beat writes the time, and keeps since when the lock is held."""
    with lock(store, clock) as held:
        clock.now += 30
        held.beat()
        assert holder(store).beat == holder(store).since + 30


def test_driver_whose_lock_was_taken_notices(store, clock):
    """A driver that slept while another took over stops at its next check, and lets it be."""
    first = lock(store, clock)
    first.acquire()
    other = replace(holder(store), token="other", host="node8", pid=4242)
    put(store, other)
    first.beat()
    with pytest.raises(StoreLockedError, match="process 4242 on node8"):
        first.check()
    first.release()
    assert holder(store) == other


def test_file_that_is_no_lock_is_not_overwritten(store, clock):
    """A lock file that we did not write stops the driver and says what to do."""
    store.publish(NAME, b"my notes")
    with pytest.raises(StoreLockedError, match="delete the file"):
        lock(store, clock).acquire()
    assert store.read(NAME) == b"my notes"


def test_store_that_cannot_be_written_is_not_a_lock(tmp_path, clock):
    """A file in place of the store is a storage error, not a held lock."""
    (tmp_path / "store").write_text("in the way")
    with pytest.raises(StorageError, match=r"store/driver\.lock"):
        lock(Store(tmp_path / "store"), clock).acquire()


HOLD = """
import sys
from sweep.lock import DriverLock
from sweep.storage import Store
DriverLock(Store(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_killed_driver_frees_its_store(store, clock):
    """A living driver in another process holds the store; killed with -9 it holds it no more."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, store.where], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        assert driver.stdout.readline() == b"held\n"
        with pytest.raises(StoreLockedError, match=f"process {driver.pid} "):
            lock(store, clock).acquire()
        driver.kill()
    with lock(store, clock) as held:
        held.check()


RACE = """
import sys
from sweep.lock import DriverLock, StoreLockedError
from sweep.storage import Store
sys.stdin.readline()
try:
    DriverLock(Store(sys.argv[1])).acquire()
except StoreLockedError:
    print("refused", flush=True)
else:
    print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_of_many_that_start_at_once_one_wins(store, clock):
    """Of six drivers that find a dead one's lock at the same moment, exactly one takes it."""
    with lock(store, clock):
        dead = replace(holder(store), pid=gone())
    put(store, dead)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, store.where], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(6)
    ]
    for racer in racers:
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    answers = sorted(racer.stdout.readline() for racer in racers)
    for racer in racers:
        racer.kill()
        racer.communicate()
    assert answers == [b"held\n"] + 5 * [b"refused\n"]


@pytest.mark.slow
def test_lock_on_an_object_store(bucket, clock):
    """On S3 the second driver stops too, and a released lock is free."""
    with lock(Store(bucket), clock), pytest.raises(StoreLockedError):
        lock(Store(bucket), clock).acquire()
    with lock(Store(bucket), clock) as held:
        held.check()


def test_this_process_was_born_and_a_dead_one_was_not():
    """A living process has a birth, one that has ended has none; this machine has a name."""
    assert born(os.getpid())
    assert born(gone()) == ""
    assert machine() == machine() != ""
