"""What a new study trains and tests on: found in a folder, or as the papers name it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweep.complaints import StudyError, closest
from trainables.data.datasets import languages_of_family
from trainables.data.files import files_below
from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref

TREEBANK_TASKS = ("upos", "parsing")
"""Tasks on Universal Dependencies."""

FAMILIES_OF: Mapping[str, tuple[str, ...]] = {
    "ner": ("wikiann", "panx", "masakhaner"),
    "xnli": ("xnli",),
    "pawsx": ("pawsx",),
    "topic": ("sib200", "mldoc", "masakhanews"),
}
"""Data sets of the other tasks, the usual one first."""

TASKS = (*TREEBANK_TASKS, *FAMILIES_OF)
"""Tasks that a study can be started for."""

USUAL_TREEBANKS: Mapping[str, str] = {"en": "en_ewt", "ar": "ar_padt", "cs": "cs_pdt"}
"""Treebank of a source language where nobody says another; `xx_gsd` for the rest."""

USUAL_TARGETS: Mapping[str, tuple[str, ...]] = {
    "upos": ("en", "fr", "de", "ru", "ar", "tr", "zh", "ja", "ko", "es"),
    "xnli": ("en", "fr", "de", "ru", "ar", "tr", "zh", "es", "hi", "sw"),
    "pawsx": ("en", "fr", "de", "es", "zh", "ja", "ko"),
}
"""Target languages where nobody says others; those of `upos` for the other tasks."""

MOST = 40
"""Targets taken up unasked."""

PARALLEL = ("pud", "par")
"""Treebanks of which every language has the same sentences: real ones, and the invented ones."""

_TEST = re.compile(r"(?P<code>[a-z]{2,3}_(?P<treebank>[a-z0-9]+))-ud-test\.conllu")
_TRAIN = re.compile(r"(?P<code>(?P<lang>[a-z]{2,3})_[a-z0-9]+)-ud-train\.conllu")


@dataclass(frozen=True, slots=True)
class TaskData:
    """What one task of a study reads.

    Attributes:
        sources: Source language -> what it is trained on.
        naming: Test data of a target language, with `{lang}`; empty where targets are codes.
        targets: Target languages, or codes.
    """

    sources: Mapping[str, str]
    naming: str
    targets: tuple[str, ...]


def usual_data(task: str, sources: Sequence[str], targets: Sequence[str]) -> TaskData:
    """As the papers name it; nothing is looked at."""
    wanted = targets or USUAL_TARGETS.get(task, USUAL_TARGETS["upos"])
    wanted = tuple(dict.fromkeys([*sources, *wanted]))
    if task in TREEBANK_TASKS:
        codes = {lang: USUAL_TREEBANKS.get(lang, f"{lang}_gsd") for lang in sources}
        return TaskData(codes, f"{{lang}}_{PARALLEL[0]}", wanted)
    name = FAMILIES_OF[task][0]
    return TaskData({lang: f"{name}-{lang}" for lang in sources}, f"{name}-{{lang}}", wanted)


def found_data(root: Path, task: str, sources: Sequence[str], targets: Sequence[str]) -> TaskData:
    """What a folder holds for a task.

    Args:
        root: The data folder.
        task: One of `TASKS`.
        sources: Languages to train on; each needs a train and a dev file.
        targets: Languages to test on; empty for all that the folder holds.

    Raises:
        StudyError: it holds no training data of a source, or no test data of a target.
    """
    if task in TREEBANK_TASKS:
        return _treebanks(root, task, sources, targets)
    tried = []
    for name in FAMILIES_OF[task]:
        codes = {lang: f"{name}-{lang}" for lang in sources}
        fault = _fault(root, codes.values())
        there = [c for c in languages_of_family(root, name, "test") if _is_there(root, name, c)]
        if fault is None and there:
            return TaskData(codes, f"{name}-{{lang}}", _chosen(task, there, targets, sources))
        tried.append(fault or f"{root}: no test file of {name}")
    raise StudyError(f"task '{task}': {tried[0]}")


@dataclass(frozen=True, slots=True)
class ParallelData:
    """What is compared: languages, and their parallel sentences as `[similarity]` names them."""

    languages: tuple[str, ...] = ()
    naming: str = f"{{lang}}_{PARALLEL[0]}"


def parallel_data(root: Path | None, data: Mapping[str, TaskData]) -> ParallelData:
    """Sources and targets with parallel sentences; none where a source has none."""
    sources = dict.fromkeys(lang for task in data.values() for lang in task.sources)
    targets = [t.partition("_")[0] for task in data.values() for t in task.targets]
    wanted = dict.fromkeys([*sources, *targets])
    kinds = PARALLEL if root else PARALLEL[:1]
    for kind in kinds:
        there = _of_kind(_tests(root), kind) if root else USUAL_TARGETS["upos"]
        if set(sources) <= set(there):
            return ParallelData(tuple(x for x in wanted if x in there), f"{{lang}}_{kind}")
    return ParallelData()


def _of_kind(codes: Sequence[str], kind: str) -> list[str]:
    """Languages with parallel sentences of a kind."""
    return [code.partition("_")[0] for code in codes if code.endswith(f"_{kind}")]


def _treebanks(root: Path, task: str, sources: Sequence[str], targets: Sequence[str]) -> TaskData:
    codes = {lang: _source(root, task, lang) for lang in sources}
    tests = _tests(root)
    for kind in PARALLEL:
        parallel = _of_kind(tests, kind)
        if {*targets, *sources} <= set(parallel):
            chosen = _chosen(task, parallel, targets, sources)
            return TaskData(codes, f"{{lang}}_{kind}", chosen)
    if not targets:
        rest = [code for code in tests if code not in codes.values()]
        own = [code for code in codes.values() if code in tests]
        return TaskData(codes, "", tuple([*own, *rest][:MOST]))
    return TaskData(codes, "", tuple(_test(tests, codes, lang, root) for lang in targets))


def _source(root: Path, task: str, lang: str) -> str:
    """The treebank to train on: the usual one, else the largest that has train and dev."""
    usual = USUAL_TREEBANKS.get(lang, f"{lang}_gsd")
    fault = _fault(root, [usual])
    if fault is None:
        return usual
    sizes = {
        match["code"]: file.stat().st_size
        for file in files_below(root)
        if (match := _TRAIN.fullmatch(file.name)) and match["lang"] == lang
    }
    for code in sorted(sizes, key=lambda code: -sizes[code]):
        if _fault(root, [code]) is None:
            return code
    raise StudyError(f"task '{task}', source '{lang}': {fault}")


def _tests(root: Path) -> list[str]:
    """Codes of the test files below a folder, sorted; those of one file each."""
    named = (_TEST.fullmatch(file.name) for file in files_below(root))
    codes = sorted({match["code"] for match in named if match})
    return [code for code in codes if _fault(root, [code], ("test",)) is None]


def _test(tests: Sequence[str], sources: Mapping[str, str], lang: str, root: Path) -> str:
    """A test set of a language: parallel, else of the treebank trained on, else any."""
    fit = [code for code in tests if code.partition("_")[0] == lang]
    for code in (*(f"{lang}_{kind}" for kind in PARALLEL), sources.get(lang), *fit):
        if code in fit:
            return code
    raise StudyError(
        f"target '{lang}': no test treebank below {root}."
        f"{closest(lang, sorted({code.partition('_')[0] for code in tests}))}"
    )


def _chosen(
    task: str, there: Sequence[str], targets: Sequence[str], sources: Sequence[str]
) -> tuple[str, ...]:
    """The targets asked for, or all there are; sources first."""
    for lang in targets:
        if lang not in there:
            raise StudyError(f"task '{task}', target '{lang}': no test data.{closest(lang, there)}")
    first = [lang for lang in sources if lang in there]
    return tuple(dict.fromkeys([*first, *targets] if targets else [*first, *there][:MOST]))


def _is_there(root: Path, name: str, language: str) -> bool:
    return _fault(root, [f"{name}-{language}"], ("test",)) is None


def _fault(
    root: Path, codes: Iterable[str], splits: Sequence[str] = ("train", "dev")
) -> str | None:
    """Why these cannot be read; None if they can."""
    try:
        for code in codes:
            for split in splits:
                data_ref(root, code, split)
    except DataError as error:
        return str(error)
    return None
