"""From names to files and hashes: what a study trains and tests on, pinned by content; no torch."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sweep.cache import cache_folder
from sweep.complaints import StudyError
from sweep.study import Study, study_names
from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref
from trainables.encoders.fingerprint import EncoderError, encoder_ref
from trainables.registry import SHIPPED_DATA, load
from trainables.spec import DataRef, EncoderRef

ROOT_VARIABLE = "XLING_DATA"
"""Folder of the data, where the study file names none."""

File = tuple[str, str, int | None]
"""Treebank code, split, limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a study names, found and pinned.

    Attributes:
        encoder: The pretrained encoder.
        train: (task, source) -> what is trained on.
        dev: (task, source) -> what the best epoch is selected on.
        targets: Task -> its test sets, in the order of the study file.
        parallel: Parallel sentences, one file a language; empty when nothing is compared.
        oracle: Task -> what the trials of a search are tested on, for the oracle: the targets' dev
            files where there are some, else the targets; empty when nothing is searched.
    """

    encoder: EncoderRef
    train: Mapping[tuple[str, str], DataRef]
    dev: Mapping[tuple[str, str], DataRef]
    targets: Mapping[str, tuple[DataRef, ...]]
    parallel: tuple[DataRef, ...]
    oracle: Mapping[str, tuple[DataRef, ...]] = field(default_factory=dict)


def resolve(study: Study) -> Resolved:
    """Find and pin the encoder and all files that a study needs.

    Raises:
        StudyError: files are missing (all of them are listed), no folder is named, or the encoder
            cannot be found or is of an unknown kind.
    """
    files = resolve_files(study)
    try:
        encoder = encoder_ref(study.encoder.model, study.encoder.revision)
    except EncoderError as error:
        raise StudyError(f"{study.file}: encoder.model: {error}") from None
    found = assembled(study, encoder, files)
    return replace(found, oracle=_oracle(study, files)) if study.search.is_on else found


def oracle_files(study: Study, root: Path) -> dict[str, DataRef]:
    """Target -> its dev file, for the targets that have one; empty when nothing is searched."""
    found: dict[str, DataRef] = {}
    codes = {code for task in study.grid.task for code in study.target_codes(task)}
    for code in sorted(codes) if study.search.is_on else ():
        with suppress(DataError):  # there is none
            found[code] = data_ref(root, code, "dev", study.evaluate.limit)
    return found


def _oracle(study: Study, files: Mapping[File, DataRef]) -> dict[str, tuple[DataRef, ...]]:
    """The targets' dev files; the targets themselves where there are none."""
    dev = oracle_files(study, data_root(study))
    tests = {code: files[test_file(study, code)] for task in study.grid.task
             for code in study.target_codes(task)}  # fmt: skip
    # One file may serve as any split: then it is the test set, whatever it is asked for as.
    best = {
        code: dev[code] if code in dev and dev[code].key != test.key else test
        for code, test in tests.items()
    }
    return {
        task: tuple(best[code] for code in study.target_codes(task)) for task in study.grid.task
    }


def assembled(study: Study, encoder: EncoderRef, files: Mapping[File, DataRef]) -> Resolved:
    """The files of a study, each where it is read."""
    cells = [(task, source) for task in study.grid.task for source in study.grid.source]
    return Resolved(
        encoder=encoder,
        train={cell: files[train_file(study, *cell)] for cell in cells},
        dev={cell: files[dev_file(study, *cell)] for cell in cells},
        targets={
            task: tuple(files[test_file(study, code)] for code in study.target_codes(task))
            for task in study.grid.task
        },
        parallel=tuple(files[file] for file in _parallel(study)),
    )


def data_root(study: Study) -> Path:
    """The folder that holds a study's data; data that ship are written on first use.

    Raises:
        StudyError: neither the study nor the environment names one, or there is none.
    """
    named = study.data.root or os.environ.get(ROOT_VARIABLE, "")
    if not named:
        raise StudyError(
            f"{study.file}: data.root: missing. Name the folder of the treebanks: --set "
            f"data.root=FOLDER, root = ... below [data], or the variable {ROOT_VARIABLE}. "
            'Or take the invented languages that ship: data.root = "toy".'
        )
    if named in SHIPPED_DATA:
        made: Path = load("data set", named, SHIPPED_DATA)(Path(cache_folder()))
        return made
    root = Path(named).expanduser().resolve()
    if not root.is_dir():
        raise StudyError(f"{study.file}: data.root = {root}: no such folder. Check the path.")
    return root


def wanted_files(study: Study) -> dict[File, list[str]]:
    """All files that a study reads, each with what it is read for, in the order of need."""
    wanted: dict[File, list[str]] = {}
    for task in study.grid.task:
        for source in study.grid.source:
            wanted.setdefault(train_file(study, task, source), []).append(f"{task} source {source}")
            wanted.setdefault(dev_file(study, task, source), []).append(f"{task} source {source}")
    for task in study.grid.task:
        for code in study.target_codes(task):
            wanted.setdefault(test_file(study, code), []).append(f"{task} target")
    for file in _parallel(study):
        wanted.setdefault(file, []).append("similarity")
    return wanted


def resolve_files(study: Study) -> dict[File, DataRef]:
    """Find and pin all files that a study needs.

    Raises:
        StudyError: files are missing (all of them are listed), or no folder is named.
    """
    root = data_root(study)
    found, missing = {}, []
    for file, purposes in wanted_files(study).items():
        code, split, limit = file
        try:
            found[file] = data_ref(root, code, split, limit)
        except DataError as error:
            what = str(error).removeprefix(f"{root}: ")  # the folder is named once, above them
            missing.append(f"  {what} (for {', '.join(dict.fromkeys(purposes))})")
    if missing:
        count = f"{len(missing)} of {len(wanted_files(study))} files cannot be used"
        name = study.name if study.name in study_names() else study.file
        fetch = f"Fetch what is missing: sweep data get --study {name} --to FOLDER"
        raise StudyError("\n".join([f"{study.file}: {count}, in {root}:", *missing, fetch]))
    return found


def train_file(study: Study, task: str, source: str) -> File:
    """What a task is trained on in a source language."""
    return study.source_code(task, source), "train", study.data.train_limit


def dev_file(study: Study, task: str, source: str) -> File:
    """What the best epoch is selected on."""
    return study.dev_code(task, source), "dev", study.data.dev_limit


def test_file(study: Study, code: str) -> File:
    """What a target is tested on."""
    return code, "test", study.evaluate.limit


def _parallel(study: Study) -> list[File]:
    if study.similarity is None:
        return []
    naming, limit = study.similarity.parallel, study.similarity.limit
    languages = study.parallel_languages()
    return [(naming.replace("{lang}", language), "test", limit) for language in languages]
