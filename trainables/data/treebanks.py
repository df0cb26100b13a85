"""Treebank codes -> files: `en_ewt` and `train` become a pinned `en_ewt-ud-train.conllu`.

A code is one of
- `en_ewt`: the file `en_ewt-ud-SPLIT.conllu`, anywhere below the data folder;
- `en_ewt@2.4`, `fr@1.4`: the same (old releases have no treebank part: `fr-ud-test.conllu`), but
  only where a folder on the way ends with that release (`ud-1.4`, `ud-treebanks-v2.4`, `r2.4`);
- `tweebank/en-ud-tweet-{split}.conllu`: a path below the data folder, with `{split}` where the
  name of the split stands, or without it for a file that serves as any split.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from trainables.data.sentence import DataError
from trainables.spec import DataRef

SPLITS = ("train", "dev", "test")

_SHOWN = 8
"""Codes spelled out in a message."""

_FETCH = "There is nothing like it below the folder; fetch the treebanks first."

_CODE = re.compile(r"(?P<name>[a-z]{2,3}(?:_[a-z0-9]+)?)(?:@(?P<release>[0-9]+(?:\.[0-9]+)*))?")
_UD_FILE = re.compile(r"(?P<name>.+)-ud-(?P<split>train|dev|test)\.conllu")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?=[-_.]|$)")


def data_ref(root: str | Path, code: str, split: str, limit: int | None = None) -> DataRef:
    """Find a treebank's file below `root` and pin it by its content.

    Args:
        root: The data folder.
        code: As described at the top of this file.
        split: `train`, `dev` or `test`.
        limit: Only the first so many sentences are meant; None for all.

    Raises:
        DataError: no file fits, or several different ones do, or the code leaves the folder.
    """
    folder = Path(root)
    if split not in SPLITS:
        raise DataError(str(root), None, f"unknown split '{split}'", f"Use {', '.join(SPLITS)}.")
    if not folder.is_dir():
        raise DataError(str(root), None, "no such data folder", "Check `data` in the study file.")
    is_path = "/" in code or code.endswith(".conllu")
    file = _named_file(folder, code, split) if is_path else _treebank_file(folder, code, split)
    return DataRef(
        code=code,
        language=language_of(code),
        split=split,
        location=str(file.absolute()),
        fingerprint=fingerprint(file),
        limit=limit,
    )


def language_of(code: str) -> str:
    """The language of a code: `en` of `en_ewt`, `fr@1.4` and `tweebank/en-ud-tweet.conllu`.

    Raises:
        DataError: the code does not begin with a language.
    """
    name = code.rpartition("/")[2].partition("@")[0]
    match = _LANGUAGE.match(name)
    if match is None:
        what = f"no language code at the start of '{name}'"
        raise DataError(code, None, what, "Name the file like en_ewt-ud-test.conllu.")
    return match[0]


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


def _named_file(root: Path, code: str, split: str) -> Path:
    """The file at a path that the study spells out."""
    relative = code.replace("{split}", split)
    parts = relative.split("/")
    if relative.startswith("/") or ".." in parts or "\\" in relative or "\0" in relative:
        what = f"'{code}' leaves the data folder"
        raise DataError(str(root), None, what, "Give a path below the folder, without '..'.")
    file = root / relative
    if not file.is_file():
        close = _same_or_similar_name(root, file.name)
        mend = f"Did you mean {' or '.join(close)}?" if close else _FETCH
        raise DataError(str(root), None, f"no file '{relative}'", mend)
    return file


def _treebank_file(root: Path, code: str, split: str) -> Path:
    """The one file of a treebank; copies of the same content count as one."""
    match = _CODE.fullmatch(code)
    if match is None:
        mend = "Write a code like en_ewt, fr@1.4, or a path with '/' below the data folder."
        raise DataError(str(root), None, f"'{code}' is no treebank code", mend)
    files = list(_files(root))
    wanted = f"{match['name']}-ud-{split}.conllu"
    named = [file for file in files if file.name == wanted]
    found = [file for file in named if _is_of_release(root, file, match["release"])]
    if not found and named:
        what = f"no {wanted} in a folder of release {match['release']}"
        mend = f"There is {', '.join(str(file.relative_to(root)) for file in named)}."
        raise DataError(str(root), None, what, mend)
    if not found:
        mend = _offer(match["name"], split, [file.name for file in files])
        raise DataError(str(root), None, f"no file {wanted}", mend)
    if len({fingerprint(file) for file in found}) > 1:
        names = ", ".join(str(file.relative_to(root)) for file in found)
        what = f"{len(found)} different files for '{code}' ({split}): {names}"
        mend = f"Name the release, as in '{match['name']}@2.16', or give the path of one."
        raise DataError(str(root), None, what, mend)
    return min(found, key=lambda file: (len(file.parts), file))


def _is_of_release(root: Path, file: Path, release: str | None) -> bool:
    if release is None:
        return True
    ending = re.compile(rf"(?:^|[^0-9.]){re.escape(release)}$")
    folders = file.relative_to(root).parts[:-1]
    # The data folder itself may be that of the release.
    return any(ending.search(name) for name in (root.name, *folders))


def _files(root: Path) -> Iterator[Path]:
    """Every .conllu file below a folder; follows links, but not in circles or into hidden ones."""
    for place, folders, files in os.walk(root, followlinks=True):
        if Path(place).is_symlink() and _leads_back(root, Path(place)):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".conllu"))


def _leads_back(root: Path, link: Path) -> bool:
    above = link.relative_to(root).parents  # of a/b/c: a/b, a, .
    return link.resolve() in {(root / folder).resolve() for folder in above}


def _offer(name: str, split: str, names: Sequence[str]) -> str:
    """How to mend a code without file: other splits of it, or the closest codes."""
    known = [match for match in map(_UD_FILE.fullmatch, names) if match]
    splits = sorted({match["split"] for match in known if match["name"] == name})
    if splits:
        return f"Of {name} there is: {', '.join(splits)}."
    codes = sorted({match["name"] for match in known if match["split"] == split})
    return _closest(name, codes)


def _closest(name: str, known: Sequence[str]) -> str:
    if not known:
        return _FETCH
    close = difflib.get_close_matches(name, known, n=3)
    if not close:  # same language
        close = [code for code in known if code.startswith(f"{name.partition('_')[0]}_")][:3]
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    more = f", ... ({len(known)})" if len(known) > _SHOWN else ""
    return f"{hint}There is {', '.join(known[:_SHOWN])}{more}."


def _same_or_similar_name(root: Path, name: str) -> list[str]:
    files = sorted(_files(root))
    names = sorted({file.name for file in files})
    near = [name] if name in names else difflib.get_close_matches(name, names, n=1)
    return [str(file.relative_to(root)) for file in files if file.name in near][:3]
