"""Reads every file of a study before anything is spent on it: counts, faults, alignment."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from sweep.annotation import Annotation, annotation, unseen
from sweep.complaints import StudyError
from sweep.identity import PROTOCOL_VERSION
from sweep.resolve import (
    File,
    data_root,
    dev_file,
    oracle_files,
    resolve_files,
    test_file,
    train_file,
    wanted_files,
)
from sweep.study import Study
from trainables.data.example import Example
from trainables.data.parallel import align
from trainables.data.reading import read
from trainables.data.sentence import DataError, Sentence
from trainables.data.treebanks import data_ref, language_of


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
        notes: What is odd about it, and no fault: broken spans, labels that training never saw.
    """

    code: str
    split: str
    limit: int | None
    purposes: tuple[str, ...]
    n_sentences: int = 0
    n_words: int = 0
    fault: str = ""
    notes: tuple[str, ...] = ()


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

    @property
    def notes(self) -> tuple[str, ...]:
        """All that is odd and no fault, one message each."""
        return tuple(f"{file.code} {file.split}: {n}" for file in self.files for n in file.notes)


def check_data(study: Study) -> DataCheck:
    """Read all files of a study.

    Raises:
        StudyError: no data folder is named, or there is none.
    """
    root = data_root(study)
    tasks = _tasks_of_files(study)
    checks: dict[File, FileCheck] = {}
    found: dict[tuple[str, File], Annotation] = {}
    parallel: dict[str, tuple[str, Sequence[Sentence]]] = {}
    wanted = wanted_files(study)
    for target in oracle_files(study, root):
        wanted.setdefault((target, "dev", study.evaluate.limit), []).append("oracle")
    for file, purposes in wanted.items():
        code, split, limit = file
        checks[file] = about = FileCheck(
            code=code, split=split, limit=limit, purposes=tuple(dict.fromkeys(purposes))
        )
        try:
            ref = data_ref(root, code, split, limit)
            contents = read(ref)
        except DataError as error:
            checks[file] = replace(about, fault=str(error))
            continue
        seen = {task: annotation(task, ref, contents) for task in tasks.get(file, ())}
        found |= {(task, file): what for task, what in seen.items()}
        notes = dict.fromkeys(note for what in seen.values() for note in what.notes)
        checks[file] = replace(
            about,
            n_sentences=len(contents),
            n_words=sum(map(_n_words, contents)),
            fault="; ".join(what.fault for what in seen.values() if what.fault),
            notes=tuple(notes),
        )
        if "similarity" in purposes:
            parallel[language_of(code)] = (ref.location, contents)
    for file, note in _never_learnt(study, found):
        checks[file] = replace(checks[file], notes=(*checks[file].notes, note))
    return _aligned(study, DataCheck(files=tuple(checks.values())), parallel)


def _tasks_of_files(study: Study) -> dict[File, list[str]]:
    """Tasks that a file's labels are read for; none where only sentences are compared."""
    files: dict[File, list[str]] = {}
    for task in study.grid.task:
        sources = study.grid.source
        used = [which(study, task, s) for s in sources for which in (train_file, dev_file)]
        used += [test_file(study, code) for code in study.target_codes(task)]
        for file in dict.fromkeys(used):
            files.setdefault(file, []).append(task)
    return files


def _never_learnt(
    study: Study, found: Mapping[tuple[str, File], Annotation]
) -> Iterator[tuple[File, str]]:
    """Labels of dev and test files that training on some source never sees: misses for sure."""
    for task in study.grid.task:
        missed: dict[tuple[File, tuple[str, ...]], list[str]] = {}
        for source in study.grid.source:
            train = found.get((task, train_file(study, task, source)))
            tests = [test_file(study, code) for code in study.target_codes(task)]
            for file in dict.fromkeys([dev_file(study, task, source), *tests]):
                labels = found.get((task, file))
                if train is not None and labels is not None:
                    names = unseen(train.labels, labels.labels)
                    missed.setdefault((file, names), []).append(source)
        for (file, names), sources in missed.items():
            if names:
                items = found[task, file].labels
                n = f"{sum(items[name] for name in names)} of {sum(items.values())}"
                learnt = f"{task} never learns from {', '.join(sources)}, so all are missed"
                yield file, f"{', '.join(names)} ({n}): {learnt}"


def _n_words(item: Sentence | Example) -> int:
    """Words of a sentence; white-space pieces of a text."""
    if isinstance(item, Sentence):
        return len(item.words)
    return len(item.text.split()) + len(item.pair.split())


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
    found = [*resolve_files(study).values(), *oracle_files(study, data_root(study)).values()]
    refs = sorted((ref.code, ref.split, ref.layout, ref.key) for ref in found)
    wanted = study.similarity
    fit = None if wanted is None else (study.parallel_languages(), wanted.unmatched)
    tasks = sorted((*map(str, file), used) for file, used in _tasks_of_files(study).items())
    return sha256(json.dumps([PROTOCOL_VERSION, refs, fit, tasks]).encode()).hexdigest()


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
