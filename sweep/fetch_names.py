"""Names of data -> what to fetch and where to put it: `en_ewt`, `UD_English-EWT@2.5`, `xnli-en`.

A name is a treebank (its code, or its repository), or `wikiann-`, `xnli-` or `pawsx-` with a
language. `@` and a release of Universal Dependencies (of the hub: a branch or commit) may stand
behind it, and `:` with the splits that are wanted: `en_ewt@2.5:train,dev`.

    FOLDER/ud-2.4/UD_English-EWT/en_ewt-ud-train.conllu
    FOLDER/ner/wikiann/en/train          FOLDER/xnli/xtreme/train-en.tsv      pawsx/ likewise
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweep.complaints import StudyError
from sweep.fetch_treebanks import TREEBANKS, UNNAMED, nearby, treebank

SPLITS = ("train", "dev", "test")

UD_URL = "https://raw.githubusercontent.com/UniversalDependencies"
HUB_URL = "https://huggingface.co"

_NAME = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)"
    r"(?:@(?P<release>[A-Za-z0-9](?:[._-]?[A-Za-z0-9]+)*))?"
    r"(?::(?P<splits>[a-z,]+))?"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,12})*")
_RELEASE = re.compile(r"[12]\.[0-9]{1,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSet:
    """One data set on the Hugging Face hub, a folder a language, a parquet file a split.

    Attributes:
        repository: Its id.
        path: Where a split ends up, with `{lang}` and `{split}`.
        languages: Languages that it has; empty where any code may be asked for.
    """

    repository: str
    path: str
    languages: tuple[str, ...] = ()


HUB_SETS: Mapping[str, HubSet] = {
    "wikiann": HubSet(repository="unimelb-nlp/wikiann", path="ner/wikiann/{lang}/{split}"),
    "xnli": HubSet(
        repository="facebook/xnli",
        path="xnli/xtreme/{split}-{lang}.tsv",
        languages=(
            "ar",
            "bg",
            "de",
            "el",
            "en",
            "es",
            "fr",
            "hi",
            "ru",
            "sw",
            "th",
            "tr",
            "ur",
            "vi",
            "zh",
        ),
    ),
    "pawsx": HubSet(
        repository="google-research-datasets/paws-x",
        path="pawsx/xtreme/{split}-{lang}.tsv",
        languages=("de", "en", "es", "fr", "ja", "ko", "zh"),
    ),
}
"""Data sets that are fetched from the hub; each is named after the layout it is converted to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One file to fetch.

    Attributes:
        name: What was asked for.
        split: `train`, `dev` or `test`.
        path: Where it goes, below the folder; made of checked parts only.
        url: Where it comes from.
        source: The end of that address, which is the same on every mirror.
        layout: What it is converted to, as in `trainables.registry.LAYOUTS`; empty: left as it is.
        language: Language of a data set of the hub; empty for a treebank.
        elsewhere: Release -> address where the same file may be, the nearest release first.
        is_needed: Whether its absence is an error; a repository that is not in the table may
            have a test set only.
    """

    name: str
    split: str
    path: str
    url: str
    source: str
    layout: str = ""
    language: str = ""
    elsewhere: tuple[tuple[str, str], ...] = ()
    is_needed: bool = True

    @property
    def server(self) -> str:
        """The base of the address."""
        return self.url.removesuffix(f"/{self.source}")


def wanted(
    name: str, *, release: str = "2.4", ud_url: str = UD_URL, hub_url: str = HUB_URL
) -> tuple[Wanted, ...]:
    """The files that a name stands for.

    Args:
        name: As described at the top of this file.
        release: Release of Universal Dependencies where the name says none.
        ud_url: Holds `UD_English-EWT/r2.4/en_ewt-ud-train.conllu` and its like.
        hub_url: The hub, or a mirror of it.

    Raises:
        StudyError: the name means nothing that can be fetched.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise StudyError(f"'{name}' is no name of data. {_KNOWN}")
    splits = _splits(name, match["splits"])
    code = match["name"]
    family, dash, _ = code.partition("-")
    if dash and family in HUB_SETS:
        return _of_hub(name, code, match["release"] or "main", splits, hub_url)
    return _of_ud(name, code, match["release"] or release, splits, ud_url)


_KNOWN = (
    "Write a treebank (en_ewt, UD_English-EWT, en_ewt@2.5), wikiann-en, xnli-en or pawsx-en; "
    "':train,dev' behind it asks for these splits only."
)


def _splits(name: str, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    splits = tuple(dict.fromkeys(text.split(",")))
    for split in splits:
        if split not in SPLITS:
            raise StudyError(f"'{name}': unknown split '{split}'. Known: {', '.join(SPLITS)}.")
    return splits


def _of_hub(
    name: str, code: str, revision: str, splits: tuple[str, ...] | None, base: str
) -> tuple[Wanted, ...]:
    family, _, language = code.partition("-")
    hub_set = HUB_SETS[family]
    known = hub_set.languages
    if (known and language not in known) or not _LANGUAGE.fullmatch(language):
        there = f"Known: {', '.join(known)}." if known else "Write it as in wikiann-en."
        raise StudyError(f"'{name}': {family} has no language '{language}'. {there}")
    files = []
    for split in splits or SPLITS:
        file = f"{'validation' if split == 'dev' else split}-00000-of-00001.parquet"
        source = f"datasets/{hub_set.repository}/resolve/{revision}/{language}/{file}"
        files.append(
            Wanted(
                name=name,
                split=split,
                path=hub_set.path.format(lang=language, split=split),
                url=f"{base}/{source}",
                source=source,
                layout=family,
                language=language,
            )
        )
    return tuple(files)


def _of_ud(
    name: str, code: str, release: str, splits: tuple[str, ...] | None, base: str
) -> tuple[Wanted, ...]:
    found = treebank(code)
    if found is None:
        raise StudyError(f"'{name}': unknown treebank '{code}'.{_close(code)}")
    if not _RELEASE.fullmatch(release):
        what = f"'{release}' is no release of Universal Dependencies"
        raise StudyError(f"'{name}': {what}. Write one like 2.4.")
    files = []
    for split in splits or found.splits:
        file = found.file(split)
        source = f"{found.repository}/r{release}/{file}"
        files.append(
            Wanted(
                name=name,
                split=split,
                path=f"ud-{release}/{found.repository}/{file}",
                url=f"{base}/{source}",
                source=source,
                elsewhere=tuple(
                    (other, f"{base}/{found.repository}/r{other}/{file}")
                    for other in nearby(release)
                ),
                is_needed=splits is not None or code in TREEBANKS or split == "test",
            )
        )
    return tuple(files)


def _close(code: str) -> str:
    """How to mend a code or repository that is not known."""
    known = [*TREEBANKS, *UNNAMED, *(f"UD_{repository}" for repository in TREEBANKS.values())]
    close = difflib.get_close_matches(code, [*known, *(f"{name}-en" for name in HUB_SETS)], n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    if code.startswith("UD_"):
        return f"{hint} Write it as its repository is called: UD_Language-TREEBANK."
    return f"{hint} Its repository's name always works: UD_English-EWT."
