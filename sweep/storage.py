"""Files of a result store, each made visible in one atomic step: nobody ever reads half a file."""

import errno
import os
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from analysis.layout import Folder

ASIDE = ".aside"
"""Folder of files being written; no reader looks there."""


class StorageError(Exception):
    """The store cannot be written: says which file, why, and how to mend it."""


_MEND = {
    errno.ENOSPC: "Free space, or choose another --storage",
    errno.EDQUOT: "Your quota is used up: free space, or choose another --storage",
    errno.EFBIG: "A file size limit is set (ulimit -f): raise it",
    errno.EACCES: "Make it writable, or choose another --storage",
    errno.EPERM: "Make it writable, or choose another --storage",
    errno.EROFS: "It is mounted read-only: choose another --storage",
    errno.ENOTDIR: "A file stands where a folder is needed: move it, or choose another --storage",
    errno.EEXIST: "A file stands where a folder is needed: move it, or choose another --storage",
}


class Store(Folder):
    """A result store on a local path or any URI of `pyarrow.fs`.

    On a local (or NFS) path, files are written aside, flushed to the disk and renamed. On an
    object store one PUT does the same.
    """

    def publish(self, path: str, data: bytes) -> None:
        """Write a file in one atomic step; an old one of that name is replaced.

        Raises:
            StorageError: the store refused it; what was visible before still is.
        """
        with self._explained(path):
            if self.is_local:
                self._write_local(path, data, lambda aside, full: aside.replace(full))
            else:
                self._put(path, data)

    def publish_new(self, path: str, data: bytes) -> bool:
        """Write a file in one atomic step unless there is one of that name.

        On an object store, two writers who find nothing at the same moment both write, and the
        later one stays: callers publish equal content, or read back who won.

        Returns:
            False when there was one; it stays as it is.

        Raises:
            StorageError: the store refused it.
        """
        with self._explained(path):
            if self.is_local:
                return self._write_local(path, data, _link)
            if self.exists(path):
                return False
            self._put(path, data)
            return True

    def delete(self, path: str) -> None:
        """Delete a file; nothing happens when there is none.

        Raises:
            StorageError: the store refused it.
        """
        with self._explained(path), suppress(FileNotFoundError):
            self.fs.delete_file(self.full(path))

    def delete_folder(self, path: str) -> None:
        """Delete a folder and all below it; nothing happens when there is none.

        Raises:
            StorageError: the store refused it.
        """
        with self._explained(path), suppress(FileNotFoundError):
            if self.is_local:
                shutil.rmtree(self.full(path))
            else:
                self.fs.delete_dir(self.full(path))

    def move(self, path: str, to: str) -> None:
        """Rename a file that is in the way but must not be lost.

        Raises:
            StorageError: the store refused it.
        """
        with self._explained(to):
            if self.is_local:
                _make_folder(Path(self.full(to)).parent)
            self.fs.move(self.full(path), self.full(to))

    def sweep_aside(self, age: timedelta, now: datetime | None = None) -> int:
        """Delete what killed writers left half-written longer than `age` ago; says how many."""
        limit = (now or datetime.now(UTC)) - age
        old = [f for f in self.files(ASIDE) if f.modified is not None and f.modified < limit]
        for file in old:
            self.delete(file.path)
        return len(old)

    def _put(self, path: str, data: bytes) -> None:
        with self.fs.open_output_stream(self.full(path)) as sink:
            sink.write(data)

    def _write_local(
        self, path: str, data: bytes, show: Callable[[Path, Path], bool | Path]
    ) -> bool:
        full = Path(self.full(path))
        _make_folder(full.parent)
        _make_folder(Path(self.full(ASIDE)))
        name = f"{full.name}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        aside = Path(self.full(ASIDE)) / name
        try:
            with aside.open("xb") as sink:
                sink.write(data)
                sink.flush()
                os.fsync(sink.fileno())
            shown = show(aside, full)
        finally:
            aside.unlink(missing_ok=True)
        _flush_folder(full.parent)
        return bool(shown)

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            number = getattr(error, "errno", None)
            mend = _MEND.get(number or 0, "Check the storage and your access to it")
            reason = os.strerror(number) if number else str(error).strip()
            raise StorageError(
                f"cannot write {self.full(path)}: {reason}. {mend}. "
                "Committed results are untouched."
            ) from error


def _link(aside: Path, full: Path) -> bool:
    """Show a file under a name that must be free."""
    try:
        os.link(aside, full)
    except FileExistsError:
        # NFS may lose the answer of a link that it has made, and say on asking again that the
        # name is taken; then the file has two names (man 2 open, O_EXCL).
        return aside.stat().st_nlink == 2  # noqa: PLR2004 - its own name and the published one
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}:
            raise
        # No hard links here (FAT, some network mounts): as safe as an object store.
        if full.exists():
            return False
        aside.replace(full)
    return True


def _make_folder(folder: Path) -> None:
    """Make a folder that survives a power cut, parents included."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
    _flush_folder(folder.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network filesystems cannot flush a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
