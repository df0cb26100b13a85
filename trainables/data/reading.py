"""A pinned file -> its sentences or examples, by the reader of its layout."""

from collections.abc import Sequence
from typing import Any

from trainables.data.fingerprints import content
from trainables.data.sentence import DataError
from trainables.registry import LAYOUTS, load
from trainables.spec import DataRef


def read(ref: DataRef) -> Sequence[Any]:
    """What a file holds, from example `skip` on and up to `limit` of them.

    Returns:
        `Sentence`s or, for a layout of `registry.TEXT_LAYOUTS`, `Example`s.

    Raises:
        DataError: the file is wrong, or holds no more than `skip`.
    """
    end = None if ref.limit is None else ref.skip + ref.limit
    found: Sequence[Any] = load("layout", ref.layout, LAYOUTS)(ref.location, end)[ref.skip :]
    if not found:
        what = f"there is nothing after the first {ref.skip}"
        raise DataError(ref.location, None, what, f"Begin '{ref.code}' earlier.")
    return found


def read_unchanged(ref: DataRef) -> Sequence[Any]:
    """As `read`, if the file is still the one that was pinned.

    Raises:
        DataError: it is not, or it is wrong.
    """
    digest = content(ref.location, ref.layout).removeprefix("sha256:")
    if not digest.startswith(ref.fingerprint.removeprefix("sha256:")):
        raise DataError(
            ref.location,
            None,
            "the file has changed since the study was planned",
            "Run the command again: it will be planned anew.",
        )
    return read(ref)
