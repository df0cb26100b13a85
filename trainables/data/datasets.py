"""Names of data sets -> files and layouts: `wikiann-en` and `train` become `wikiann/en/train`.

A name is a data set of `FAMILIES`, a dash, and a language as UD writes it (`en`) or as the data
set does (`eng`, `zho_Hans`, `en_ewt`); `@2.0` behind it asks for a folder of that release.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from trainables.data.files import files_below, folders_above, is_of_release, the_one
from trainables.data.languages import ud_code
from trainables.data.sentence import DataError

SPLITS = ("train", "dev", "test")

MANY = "mul"
"""Language of a file in many languages (ISO 639-2)."""

_LANG = "(?P<lang>[A-Za-z]{2,3}(?:_[A-Za-z0-9]+)?)"


@dataclass(frozen=True)
class Family:
    """One way in which a data set names its files.

    Attributes:
        layout: Name of the reader, as in `registry.LAYOUTS`.
        file: End of the path, with `{lang}` and `{split}`.
        folder: Pattern of a folder that must be on the way, where file names alone do not tell;
            small letters, empty for any.
        splits: Its own names of `train`, `dev` and `test`, where they differ.
        languages: Its own names of languages -> UD's, where they are no codes.
    """

    layout: str
    file: str
    folder: str = ""
    splits: Mapping[str, str] = field(default_factory=dict)
    languages: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Path below the data folder -> `split` and, if files have one language each, `lang`."""
        lang = f"(?P<lang>{'|'.join(self.languages)})" if self.languages else _LANG
        split = f"(?P<split>{'|'.join(self.splits.get(name, name) for name in SPLITS)})"
        ending = re.escape(self.file)
        return re.compile(
            "(?:.*/)?" + ending.replace(r"\{lang\}", lang).replace(r"\{split\}", split)
        )


FAMILIES: Mapping[str, tuple[Family, ...]] = {
    "wikiann": (Family("wikiann", "{lang}/{split}"),),
    "panx": (Family("panx", "{split}-{lang}.tsv", folder="panx"),),
    "masakhaner": (Family("masakhaner", "{lang}/{split}.txt", folder="masakhaner.*"),),
    "uner": (Family("uner", "{lang}-ud-{split}.iob2"),),
    "conll": (Family("conll", "{lang}.{split}", splits={"dev": "testa", "test": "testb"}),),
    "udpos": (Family("udpos", "{split}-{lang}.tsv", folder="udpos"),),
    "xnli": (Family("xnli", "{split}-{lang}.tsv", folder="xnli"),),
    "kornli": (Family("kornli", "xnli.{split}.{lang}.tsv"),),
    "americasnli": (Family("americasnli", "{split}/{lang}.tsv", folder="americasnli"),),
    "pawsx": (
        Family("pawsx", "{split}-{lang}.tsv", folder="pawsx"),
        Family("pawsx-final", "{lang}/{split}_2k.tsv", folder="x-final"),
    ),
    "sib200": (Family("sib200", "{lang}/{split}.tsv", folder="sib-?200"),),
    "masakhanews": (Family("masakhanews", "{lang}/{split}.tsv", folder="masakhanews"),),
    "mldoc": (
        Family(
            "mldoc",
            "{lang}.{split}",
            folder="mldoc.*",
            splits={"train": "train.1000"},
            languages={
                "chinese": "zh",
                "english": "en",
                "french": "fr",
                "german": "de",
                "italian": "it",
                "japanese": "ja",
                "russian": "ru",
                "spanish": "es",
            },
        ),
    ),
    "wili": (Family("wili", "x_{split}.txt"),),
}
"""Data sets that a study may name, besides treebanks.

    wikiann      Rahimi et al. (2019): a folder a language, files without ending
    panx         the same as XTREME lays it out
    masakhaner   MasakhaNER 1.0 or 2.0: a folder a language
    uner         Universal NER, by treebank: uner-en_ewt
    conll        CoNLL 2002 and 2003: eng.train, eng.testa (dev), eng.testb (test); esp, ned, deu
    udpos        XTREME's part-of-speech files
    xnli, kornli, americasnli, pawsx, sib200, masakhanews: texts, as their readers say
    mldoc        english.train.1000, english.dev, english.test
    wili         x_train.txt, x_test.txt: texts in many languages, so its one name is wili-mul
"""


def family_named(code: str) -> tuple[str, str] | None:
    """The data set and the rest of a code like `wikiann-en`; None if it names no data set."""
    name, dash, rest = code.partition("-")
    return (name, rest) if dash and name in FAMILIES else None


def find_file(root: Path, code: str, split: str) -> tuple[Path, str]:
    """The file of a data set's language and split, and its layout.

    Args:
        root: The data folder.
        code: `wikiann-en`; its data set is known.
        split: `train`, `dev` or `test`.

    Raises:
        DataError: no file fits, or several different ones do.
    """
    name, rest = code.split("-", maxsplit=1)
    language, at, release = rest.partition("@")
    there = list(_files(root, FAMILIES[name], release if at else None))
    of_split = [found for found in there if found.split == split]
    # `zho_Hans` itself goes before everything else that is Chinese.
    exact = [found for found in of_split if found.language == language]
    fit = exact or [found for found in of_split if ud_code(found.language) == language]
    if fit:
        file = the_one(root, code, split, [found.file for found in fit], _either(name, fit))
        return file, next(found.layout for found in fit if found.file == file)
    wanted = " or ".join(_wanted(family, language, split) for family in FAMILIES[name])
    what = f"no file {wanted}{f' of release {release}' if at else ''}"
    raise DataError(str(root), None, what, _offer(name, language, split, there))


def languages_of_family(root: Path, name: str, split: str) -> list[str]:
    """Languages of which a folder holds this split of a data set, as UD writes them, sorted.

    Args:
        root: The data folder.
        name: One of `FAMILIES`.
        split: `train`, `dev` or `test`.
    """
    found = (file.language for file in _files(root, FAMILIES[name], None) if file.split == split)
    return sorted({code for language in found if (code := ud_code(language))})


class _Found(NamedTuple):
    """A file of a data set; the language as the data set writes it."""

    language: str
    split: str
    layout: str
    file: Path


def _files(root: Path, families: Sequence[Family], release: str | None) -> Iterator[_Found]:
    """Every file of a data set."""
    for file in files_below(root):
        path = file.relative_to(root).as_posix()
        for family in families:
            match = family.pattern.fullmatch(path)
            if match is None or not is_of_release(root, file, release):
                continue
            folders = (name.lower() for name in folders_above(root, file))
            if not family.folder or any(re.fullmatch(family.folder, name) for name in folders):
                ours = {family.splits.get(split, split): split for split in SPLITS}
                name = match.groupdict().get("lang", MANY)
                language = family.languages.get(name, name)
                yield _Found(language, ours[match["split"]], family.layout, file)


def _wanted(family: Family, language: str, split: str) -> str:
    name = family.file.replace("{lang}", language)
    name = name.replace("{split}", family.splits.get(split, split))
    folder = re.sub(r"[.-][*?]", "", family.folder)
    return f"{name} below a folder '{folder}'" if folder else name


def _either(name: str, fit: Sequence[_Found]) -> str:
    codes = sorted({f"{name}-{found.language}" for found in fit})
    if len(codes) > 1:
        return f"Write {' or '.join(codes)}."
    return f"Name the release, as in '{codes[0]}@2.0', or give the path with its layout."


def _offer(name: str, language: str, split: str, there: Sequence[_Found]) -> str:
    """How to mend a name without file: other splits of it, or the closest names."""
    if not there:
        return f"There is no file of {name} below the folder; fetch it first."
    same = {f.split for f in there if language in (f.language, ud_code(f.language))}
    if same:
        return f"Of {name}-{language} there is: {', '.join(sorted(same))}."
    known = sorted({f.language for f in there if f.split == split})
    close = difflib.get_close_matches(language, known, n=1)
    hint = f"Did you mean {name}-{close[0]}? " if close else ""
    listed = ", ".join(f"{name}-{its}" for its in known)
    return f"{hint}There is {listed or f'no {split} file of {name}'}."
