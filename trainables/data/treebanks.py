"""Names of data -> files: `en_ewt` and `train` become a pinned `en_ewt-ud-train.conllu`.

A code is one of
- `en_ewt`: the file `en_ewt-ud-SPLIT.conllu`, anywhere below the data folder;
- `en_ewt@2.4`, `fr@1.4`: the same (old releases have no treebank part: `fr-ud-test.conllu`), but
  only where a folder on the way ends with that release (`ud-1.4`, `ud-treebanks-v2.4`, `r2.4`);
- `wikiann-en`, `uner-en_ewt`: a language of a data set (`trainables.data.datasets`);
- `tweebank/en-ud-tweet-{split}.conllu`: a path below the data folder, with `{split}` where the
  name of the split stands, or without it for a file that serves as any split;
- `conll:mine/en-{split}.txt`: the same, with the layout of the file in front
  (`trainables.registry.LAYOUTS`); CoNLL-U (.conllu) and Universal NER (.iob2) need none.

Behind each may stand which part of the file is meant, counted in sentences or examples from 0:
`xnli:xnli/dev-en.tsv[:2000]` are the first 2,000, `xnli:xnli/dev-en.tsv[2000:]` all others.
"""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from trainables.data.datasets import FAMILIES, MANY, SPLITS, family_named, find_file
from trainables.data.files import files_below, is_of_release, the_one
from trainables.data.fingerprints import content, fingerprint
from trainables.data.languages import ud_code
from trainables.data.sentence import DataError
from trainables.registry import LAYOUTS, UnknownName, check_name
from trainables.spec import DataRef

__all__ = ["SPLITS", "data_ref", "fingerprint", "language_of"]

_SHOWN = 8
"""Codes spelled out in a message."""

_LAYOUT = "Write it in front, as in 'conll:mine/en-{split}.txt'."

_FETCH = "There is nothing like it below the folder; fetch the treebanks first."

_PART = re.compile(r"(?P<code>.+)\[(?P<start>[0-9]*):(?P<end>[0-9]*)\]")
_CODE = re.compile(r"(?P<name>[a-z]{2,3}(?:_[a-z0-9]+)?)(?:@(?P<release>[0-9]+(?:\.[0-9]+)*))?")
_UD_FILE = re.compile(r"(?P<name>.+)-ud-(?P<split>train|dev|test)\.conllu")
_ENDINGS = {".conllu": "conllu", ".iob2": "uner"}


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
    name, start, end = part_of(code)
    file, layout = _find(folder, name, split)
    if end is not None:
        limit = end - start if limit is None else min(limit, end - start)
    return DataRef(
        code=code,
        language=language_of(code),
        split=split,
        location=str(file.absolute()),
        layout=layout,
        fingerprint=content(file, layout),
        limit=limit,
        skip=start,
    )


def part_of(code: str) -> tuple[str, int, int | None]:
    """Code, first and one past the last sentence of `en_ewt[10:20]`; None is the end of the file.

    Raises:
        DataError: the part is empty.
    """
    match = _PART.fullmatch(code)
    if match is None:
        return code, 0, None
    start = int(match["start"] or 0)
    end = int(match["end"]) if match["end"] else None
    if end is not None and end <= start:
        raise DataError(code, None, "this part of a file is empty", "Write it like [10:20].")
    return match["code"], start, end


def language_of(code: str) -> str:
    """The language of a code, as UD writes it: `en` of `en_ewt`, `uner-en_ewt`, `eng.train`.

    Raises:
        DataError: the code names no language.
    """
    code, _, _ = part_of(code)
    if code.startswith("wili:"):
        return MANY
    family = family_named(code)
    names = [family[1]] if family else [code]
    if _is_path(code):
        *folders, file = code.partition(":")[2].split("/") if ":" in code else code.split("/")
        # train-en.tsv says its split first; en/train says its language in the folder.
        stem = re.sub(r"^(?:train|dev|test|\{split\})[-_.]", "", file.rpartition(".")[0] or file)
        names = [stem, *(folder for folder in reversed(folders) if folder not in SPLITS)]
    for name in names:
        language = None if name in SPLITS else ud_code(name.partition("@")[0])
        if language is not None:
            return language
    what = f"no language code at the start of '{names[0]}'"
    raise DataError(code, None, what, "Name the file like en_ewt-ud-test.conllu.")


def _is_path(code: str) -> bool:
    return "/" in code or ":" in code or code.endswith(tuple(_ENDINGS))


def _find(root: Path, code: str, split: str) -> tuple[Path, str]:
    """The file that a code means, and its layout."""
    if _is_path(code):
        layout, colon, path = code.rpartition(":")
        file = _named_file(root, path, split)
        return file, _layout(root, layout, code) if colon else _layout_of_ending(root, path)
    if family_named(code):
        return find_file(root, code, split)
    return _treebank_file(root, code, split), "conllu"


def _layout(root: Path, name: str, code: str) -> str:
    try:
        check_name("layout", name, LAYOUTS)
    except UnknownName as error:
        raise DataError(str(root), None, f"'{code}': {error}".rstrip("."), _LAYOUT) from None
    return name


def _layout_of_ending(root: Path, path: str) -> str:
    ending = next((end for end in _ENDINGS if path.endswith(end)), None)
    if ending is None:
        raise DataError(str(root), None, f"the layout of '{path}' is not said", _LAYOUT)
    return _ENDINGS[ending]


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
        raise DataError(str(root), None, f"'{code}' is no treebank code", _mend_code(code))
    files = [file for file in files_below(root) if file.suffix == ".conllu"]
    wanted = f"{match['name']}-ud-{split}.conllu"
    named = [file for file in files if file.name == wanted]
    found = [file for file in named if is_of_release(root, file, match["release"])]
    if not found and named:
        what = f"no {wanted} in a folder of release {match['release']}"
        mend = f"There is {', '.join(str(file.relative_to(root)) for file in named)}."
        raise DataError(str(root), None, what, mend)
    if not found:
        mend = _offer(match["name"], split, [file.name for file in files])
        raise DataError(str(root), None, f"no file {wanted}", mend)
    mend = f"Name the release, as in '{match['name']}@2.16', or give the path of one."
    return the_one(root, code, split, found, mend)


def _mend_code(code: str) -> str:
    """How to mend what is neither treebank nor data set."""
    name, dash, language = code.partition("-")
    close = difflib.get_close_matches(name, FAMILIES, n=1) if dash else []
    hint = f"Did you mean {close[0]}-{language}? " if close else ""
    known = ", ".join(f"{name}-..." for name in FAMILIES)
    return f"{hint}Write a code like en_ewt, fr@1.4, {known}, or a path below the data folder."


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
    files = sorted(files_below(root))
    names = sorted({file.name for file in files})
    near = [name] if name in names else difflib.get_close_matches(name, names, n=1)
    return [str(file.relative_to(root)) for file in files if file.name in near][:3]
