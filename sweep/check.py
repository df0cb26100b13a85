"""Reads every file of a study before anything is spent on it: counts, faults, alignment."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from sweep.complaints import StudyError
from sweep.identity import PROTOCOL_VERSION
from sweep.resolve import data_root, resolve_files, wanted_files
from sweep.study import Study
from trainables.data.parallel import align
from trainables.data.sentence import DataError, Sentence
from trainables.data.treebanks import data_ref, language_of
from trainables.registry import LAYOUTS, load
from trainables.spec import DataRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """One file of a study.

    Attributes:
        code: Its treebank.
        split: `train`, `dev` or `test`.
        limit: Only so many sentences are used; None for all.
        purposes: What it is read for.
        n_sentences: Sentences that are used.
        n_words: Syntactic words in them.
        fault: Why it cannot be used; empty if it can.
    """

    code: str
    split: str
    limit: int | None
    purposes: tuple[str, ...]
    n_sentences: int = 0
    n_words: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """All files of a study.

    Attributes:
        files: One entry a file, in the order of need.
        n_parallel: Sentences that all compared languages share; None when nothing is compared.
        misalignment: Why they cannot be compared; empty if they can.
    """

    files: tuple[FileCheck, ...]
    n_parallel: int | None = None
    misalignment: str = ""

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong, one message each."""
        told = (*(file.fault for file in self.files), self.misalignment)
        return tuple(fault for fault in told if fault)


def check_data(study: Study) -> DataCheck:
    """Read all files of a study.

    Raises:
        StudyError: no data folder is named, or there is none.
    """
    root = data_root(study)
    checks: list[FileCheck] = []
    parallel: dict[str, tuple[str, Sequence[Sentence]]] = {}
    for (code, split, limit), purposes in wanted_files(study).items():
        about = FileCheck(
            code=code, split=split, limit=limit, purposes=tuple(dict.fromkeys(purposes))
        )
        try:
            ref = data_ref(root, code, split, limit)
            sentences = read(ref)
        except DataError as error:
            checks.append(replace(about, fault=str(error)))
            continue
        n_words = sum(len(sentence.words) for sentence in sentences)
        checks.append(replace(about, n_sentences=len(sentences), n_words=n_words))
        if "similarity" in purposes:
            parallel[language_of(code)] = (ref.location, sentences)
    return _aligned(study, DataCheck(files=tuple(checks)), parallel)


def refuse_faults(study: Study, cache: Path) -> None:
    """Stop before anything is spent if a file of the study is wrong.

    Files that passed are remembered by their content, so that the next run need not read them.

    Args:
        study: The study.
        cache: Local folder of what can be made again.

    Raises:
        StudyError: names every file that is wrong, and why.
    """
    passed = cache / "checked" / _fingerprint(study)
    if passed.exists():
        return
    faults = check_data(study).faults
    if faults:
        listed = "".join(f"\n  {fault}" for fault in faults)
        raise StudyError(f"{study.file}: its data cannot be used:{listed}")
    passed.parent.mkdir(parents=True, exist_ok=True)
    passed.touch()


def _fingerprint(study: Study) -> str:
    """A name for what was read: contents of all files, and how they were to fit together."""
    files = resolve_files(study)
    refs = sorted((ref.code, ref.split, ref.layout, ref.key) for ref in files.values())
    wanted = study.similarity
    fit = None if wanted is None else (study.parallel_languages(), wanted.unmatched)
    return sha256(json.dumps([PROTOCOL_VERSION, refs, fit]).encode()).hexdigest()


def read(ref: DataRef) -> Sequence[Sentence]:
    """The sentences of a file, by the reader that its layout names.

    Raises:
        DataError: the file is wrong.
    """
    sentences: Sequence[Sentence] = load("layout", ref.layout, LAYOUTS)(ref.location, ref.limit)
    return sentences


def _aligned(
    study: Study, check: DataCheck, parallel: Mapping[str, tuple[str, Sequence[Sentence]]]
) -> DataCheck:
    """The check, with what becomes of the parallel sentences if all their files could be read."""
    wanted = study.similarity
    if wanted is None or not parallel or len(parallel) < len(study.parallel_languages()):
        return check
    try:
        order = align(parallel, wanted.unmatched)
    except DataError as error:
        return replace(check, misalignment=str(error))
    return replace(check, n_parallel=len(next(iter(order.values()))))
