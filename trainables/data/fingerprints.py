"""What is in a file, as a hash: how data are pinned."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from trainables.data.sentence import DataError


def fingerprint(path: str | Path) -> str:
    """`sha256:<hash of the content>`; computed once per process unless the file changes.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        now = Path(path).stat()
        return _hash(os.fspath(path), now.st_size, now.st_mtime_ns)
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise DataError(str(path), None, what, "Check the path and its permissions.") from error


@lru_cache(maxsize=4096)
def _hash(path: str, _size: int, _mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def content(location: str | Path, layout: str) -> str:
    """The fingerprint of a file, and of the file of its labels where they lie in one of their own.

    Raises:
        DataError: a file cannot be read.
    """
    texts = fingerprint(location)
    if layout != "wili":
        return texts
    path = Path(location)
    labels = fingerprint(path.with_name(f"y_{path.name.removeprefix('x_')}"))
    return f"sha256:{hashlib.sha256(f'{texts} {labels}'.encode()).hexdigest()}"
