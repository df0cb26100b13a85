"""One driver a store: the second stops with a message, unless the first is dead.

The lock is a file that says who holds it, renewed by a heartbeat. On a local path or NFS it is
exact (changes are made under a file lock). On an object store there is no such step: two drivers
that start within `settle_s` of each other are told apart by reading back after it; a write that
takes longer than that to be seen lets both start, and the next heartbeat stops the first of them.
Workers need no lock, and a compaction checks it before each visible step.
"""

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from analysis.rowfiles import TableError
from sweep.storage import StorageError, Store

NAME = "driver.lock"
"""The lock's file below the store."""

log = logging.getLogger(__name__)


class StoreLockedError(Exception):
    """Another driver works on this store: says who, since when, and how to mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock. Times in seconds since 1970.

    Attributes:
        host: Name of the machine, for people.
        machine: Boot id and process namespace: equal where pids mean the same.
        pid: The process.
        born: When it started, in the kernel's ticks since boot: pids are used again.
        since: When it took the lock.
        beat: When it last said that it lives.
        token: Its own mark.
    """

    host: str
    machine: str
    pid: int
    born: str
    since: float
    beat: float
    token: str

    def is_dead(self, now: float, dead_after_s: float) -> bool:
        """Whether it surely works no more: by its process here, by its heartbeat elsewhere."""
        if self.machine and self.machine == machine():
            return born(self.pid) != self.born
        return now - self.beat > dead_after_s


class DriverLock:
    """Held while a driver works on a store: `with DriverLock(store) as lock:`.

    Args:
        store: The result store.
        heartbeat_s: Seconds between two signs of life.
        dead_after_s: Silence after which a driver on another machine counts as dead; far more
            than clocks differ.
        settle_s: On an object store, the wait before reading back who won.
        clock: Seconds since 1970; replaced in tests.
    """

    def __init__(
        self,
        store: Store,
        *,
        heartbeat_s: float = 30.0,
        dead_after_s: float = 300.0,
        settle_s: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._heartbeat_s, self._dead_after_s = heartbeat_s, dead_after_s
        self._settle_s, self._clock = settle_s, clock
        self._mine: Holder | None = None
        self._lost = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock and start the heartbeat.

        Raises:
            StoreLockedError: a driver that lives holds it.
            StorageError: the store cannot be written.
        """
        now = self._clock()
        mine = Holder(
            host=socket.gethostname(),
            machine=machine(),
            pid=os.getpid(),
            born=born(os.getpid()),
            since=now,
            beat=now,
            token=uuid.uuid4().hex,
        )
        with self._alone():
            found = self._read()
            if found is not None:
                if not found.is_dead(now, self._dead_after_s):
                    raise StoreLockedError(self._message(found))
                log.warning("driver %d on %s is dead; taking over", found.pid, found.host)
            self._write(mine)
        if not self._store.is_local:
            time.sleep(self._settle_s)
            found = self._read()
            if found is not None and found.token != mine.token:
                raise StoreLockedError(self._message(found))
        self._mine, self._lost = mine, ""
        self._stop.clear()
        self._thread = threading.Thread(target=self._beat_on, name="driver-lock", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Give the lock back; one that was lost meanwhile stays with its new holder."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        mine, self._mine = self._mine, None
        if mine is None:
            return
        try:
            with self._alone():
                found = self._read()
                if found is not None and found.token == mine.token:
                    self._store.delete(NAME)
        except (StorageError, StoreLockedError) as error:
            log.warning("the lock of %s stays behind: %s", self._store.where, error)

    @property
    def token(self) -> str:
        """The mark of this holder, as the lock's file shows it; empty when not held."""
        return self._mine.token if self._mine else ""

    def check(self) -> None:
        """Make sure that the lock is still ours; cheap, so ask before each visible step.

        Raises:
            StoreLockedError: it is not.
        """
        if self._mine is None or self._lost:
            raise StoreLockedError(self._lost or f"{self._store.where}: the lock is not held.")

    def beat(self) -> None:
        """Say that we live, and notice when somebody else has taken the lock."""
        mine = self._mine
        if mine is None or self._lost:
            return
        with self._alone():
            found = self._read()
            if found is None or found.token != mine.token:
                self._lost = (
                    f"{self._store.where}: this driver's lock was taken away"
                    f"{f' by process {found.pid} on {found.host}' if found else ''}. "
                    "Committed results are safe; run the study again when the other is through."
                )
                return
            self._mine = replace(mine, beat=self._clock())
            self._write(self._mine)

    def _beat_on(self) -> None:
        while not self._stop.wait(self._heartbeat_s):
            try:
                self.beat()
            except Exception as error:  # noqa: BLE001 - a store that fails now may not in 30 s
                log.warning("no heartbeat into %s: %s", self._store.where, error)
            if self._lost:
                log.error("%s", self._lost)
                return

    def _read(self) -> Holder | None:
        try:
            text = self._store.read(NAME)
        except FileNotFoundError:
            return None
        except TableError as error:
            raise StorageError(str(error)) from error
        try:
            return Holder(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise StoreLockedError(
                f"{self._store.where}/{NAME}: not a lock that we wrote ({error}). "
                "Make sure that no driver works on this store, and delete the file."
            ) from error

    def _write(self, holder: Holder) -> None:
        self._store.publish(NAME, json.dumps(asdict(holder), indent=1).encode())

    def _message(self, found: Holder) -> str:
        since, beat = (
            datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            for t in (found.since, found.beat)
        )
        return (
            f"{self._store.where}: another driver works on this store: process {found.pid} on "
            f"{found.host}, since {since}, last heard of {beat}. Wait for it, or stop it there "
            f"(kill -INT {found.pid}). If its machine is gone, it counts as dead "
            f"{self._dead_after_s / 60:.0f} minutes after its last sign of life."
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a file lock, where there are such, from looking at the lock to changing it."""
        if not self._store.is_local:
            yield
            return
        guard = FileLock(Path(self._store.root) / f"{NAME}.guard", timeout=60)
        held = False
        with suppress(OSError):  # no such locks on this filesystem, or no folder yet: `_write` says
            Path(self._store.root).mkdir(parents=True, exist_ok=True)
            try:
                guard.acquire()
                held = True
            except Timeout as error:
                raise StorageError(
                    f"{guard.lock_file} is held for a minute by another process. "
                    "See who (fuser, lsof), and stop it."
                ) from error
            except NotImplementedError:
                pass
        try:
            yield
        finally:
            if held:
                guard.release()


def machine() -> str:
    """Boot id and process namespace of this process; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def born(pid: int) -> str:
    """When a process started, in ticks since boot; empty when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *rest = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return "" if state in "ZX" else rest[18]
