"""Text files -> numbered lines and blocks, with the faults that every layout shares."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from trainables.data.sentence import DataError

Line = tuple[int, str]
"""1-based number of a line and its text without line end."""


def read_lines(path: str) -> Iterator[Line]:
    """Decode a file line by line; CR LF and a byte order mark are read as if they were not there.

    Raises:
        DataError: the file cannot be read, is not UTF-8, or a line holds a carriage return or a
            zero byte (old line ends, or what a crash leaves of a file).
    """
    try:
        with Path(path).open("rb") as file:
            for number, raw in enumerate(file, 1):
                yield number, _decode(raw, number, path)
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise DataError(path, None, what, "Check the path and its permissions.") from error


def blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Cut lines at blank ones; several in a row are read as one."""
    block: list[Line] = []
    for number, text in lines:
        if text.strip(" "):
            block.append((number, text))
        elif block:
            yield block
            block = []
    if block:
        yield block


def check_limit(limit: int | None) -> None:
    """Refuse a limit that leaves nothing.

    Raises:
        ValueError: `limit` is less than 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit = {limit}: must be at least 1, or None for all")


def _decode(raw: bytes, number: int, path: str) -> str:
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        bad = f"byte {raw[error.start]:#04x} at position {error.start + 1}"
        mend = "Convert the file to UTF-8, or fetch it again if it is not a text file."
        raise DataError(path, number, f"not UTF-8 ({bad})", mend) from error
    text = text.removesuffix("\n").removesuffix("\r")
    if "\r" in text or "\0" in text:
        what = "a carriage return or a zero byte inside a line"
        raise DataError(path, number, what, "Fetch the file again, or mend its line ends.")
    return text
