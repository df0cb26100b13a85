"""Files below a data folder: all of them, and which release each lies in."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from trainables.data.fingerprints import fingerprint
from trainables.data.sentence import DataError


def files_below(root: Path) -> Iterator[Path]:
    """Every file below a folder; follows links, but not in circles or into hidden folders."""
    for place, folders, files in os.walk(root, followlinks=True):
        if Path(place).is_symlink() and _leads_back(root, Path(place)):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(files) if not name.startswith("."))


def folders_above(root: Path, file: Path) -> tuple[str, ...]:
    """Names of the folders on the way to a file; the data folder's own name is the first."""
    return (root.name, *file.relative_to(root).parts[:-1])


def is_of_release(root: Path, file: Path, release: str | None) -> bool:
    """Whether a folder on the way ends with a release (`ud-1.4`, `MasakhaNER2.0`); None is any."""
    if release is None:
        return True
    ending = re.compile(rf"(?:^|[^0-9.]){re.escape(release)}$")
    return any(ending.search(name) for name in folders_above(root, file))


def the_one(root: Path, code: str, split: str, found: list[Path], mend: str) -> Path:
    """The file that all of `found` are copies of: the one nearest to the root.

    Raises:
        DataError: they differ; `mend` says how to name one of them.
    """
    if len({fingerprint(file) for file in found}) > 1:
        names = ", ".join(str(file.relative_to(root)) for file in found)
        what = f"{len(found)} different files for '{code}' ({split}): {names}"
        raise DataError(str(root), None, what, mend)
    return min(found, key=lambda file: (len(file.parts), file))


def _leads_back(root: Path, link: Path) -> bool:
    above = link.relative_to(root).parents  # of a/b/c: a/b, a, .
    return link.resolve() in {(root / folder).resolve() for folder in above}
