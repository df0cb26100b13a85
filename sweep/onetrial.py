"""One trial, found by the start of its id, with every row, attempt and file that its store holds.

Only what concerns the trial is read: a store of ten thousand trials answers as fast as one of ten.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from analysis.layout import COMMIT_NAME, Current, File, Folder, read_commits, read_part
from analysis.schema import TABLES
from analysis.tables import TRIES, deduplicate, stack, vanished
from sweep.complaints import StudyError
from sweep.housekeeping import trial_of

Row = dict[str, Any]

FEW = 6
"""Ids spelled out in a message."""

_ID = re.compile(r"[0-9a-z]+")
_STATE = re.compile(r"step-(\d+)\.safetensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTrial:
    """What a store knows of one trial.

    Attributes:
        trial_id: Its whole id.
        store: Root of the store.
        studies: Studies of this store that ask for it.
        attempts: Every row of the trials table, oldest first: failed ones, pruned ones, the one
            that trained it, and those that measured more.
        scores: Its numbers, each once; so are the next two.
        similarity: As `analysis.schema` has it.
        curves: As `analysis.schema` has it.
        checkpoints: Files below its folder of checkpoints.
    """

    trial_id: str
    store: str
    studies: tuple[str, ...] = ()
    attempts: tuple[Row, ...] = ()
    scores: tuple[Row, ...] = ()
    similarity: tuple[Row, ...] = ()
    curves: tuple[Row, ...] = ()
    checkpoints: tuple[File, ...] = field(default=())

    @property
    def trained(self) -> Row | None:
        """The row of the attempt that trained it whole; None before there is one."""
        return self._last(("done",), kind="train")

    @property
    def status(self) -> str:
        """`done`, `pruned`, `failed`, `interrupted` (a checkpoint waits) or `not run yet`.

        A trial that was trained counts as done, even where a later measurement failed.
        """
        if self.trained is not None:
            return "done"
        for status in ("pruned", "failed"):
            if self._last((status,)) is not None:
                return status
        return "interrupted" if self.step else "not run yet"

    @property
    def step(self) -> int:
        """Optimiser steps in the newest mid-trial checkpoint; 0 where there is none."""
        steps = [_STATE.search(file.path) for file in self.checkpoints]
        return max((int(match[1]) for match in steps if match), default=0)

    @property
    def main(self) -> Row | None:
        """The row that says most: of the training, else of the last attempt; None if none ran."""
        return self.trained or (self.attempts[-1] if self.attempts else None)

    @property
    def failure(self) -> Row | None:
        """The last failed attempt, unless the trial was trained after it."""
        failed = self._last(("failed",))
        trained = self.trained
        if failed is None or trained is None or _when(failed) > _when(trained):
            return failed
        return None

    def _last(self, statuses: Sequence[str], kind: str | None = None) -> Row | None:
        rows = [row for row in self.attempts if row["status"] in statuses]
        if kind is not None:
            rows = [row for row in rows if row["kind"] == kind]
        return rows[-1] if rows else None


def known_ids(folder: Folder) -> frozenset[str]:
    """Ids of all trials that a store has rows of, or that one of its studies asks for."""
    ids = {trial_of(commit_id) for commit_id in _commits(folder, "commits")}
    for _ in range(TRIES):
        current = Current.read(folder)
        try:
            for part in current.parts:
                rows = read_part(folder, part, "trials", columns=["trial_id"])
                ids |= set(rows.column("trial_id").unique().to_pylist())
            break
        except FileNotFoundError:
            continue
    else:
        raise vanished(folder, current)
    for planned in _studies(folder).values():
        ids |= planned
    return frozenset(ids)


def find_trial(folder: Folder, start: str) -> str:
    """The one trial whose id begins like this.

    Args:
        folder: The store.
        start: A trial id or its first letters; a job or commit id stands for its trial.

    Raises:
        StudyError: no trial, or several; the message lists some.
        TableError: the store cannot be read.
    """
    wanted = trial_of(start.strip().lower())
    ids = known_ids(folder)
    if wanted in ids:
        return wanted
    fit = sorted(i for i in ids if wanted and i.startswith(wanted))
    if len(fit) == 1:
        return fit[0]
    if fit:
        length = _told_apart(fit)
        listed = ", ".join(i[:length] for i in fit[:FEW])
        more = f", ... ({len(fit)} in all)" if len(fit) > FEW else ""
        raise StudyError(f"trial '{start}': {len(fit)} trials begin so: {listed}{more}. Say more.")
    if not ids:
        raise StudyError(
            f"trial '{start}': the store {folder.where} holds no trial. "
            "Name the store with --storage, or the study with --study."
        )
    raise StudyError(f"trial '{start}': not in the store {folder.where}.{_hint(wanted, ids)}")


def read_trial(folder: Folder, trial_id: str) -> OneTrial:
    """Read all that a store has of one trial.

    Args:
        folder: The store.
        trial_id: A whole id, as `find_trial` gives it; one without rows was not run yet.

    Raises:
        TableError: the store cannot be read.
    """
    raw = _raw(folder, trial_id)
    once = deduplicate(raw)
    attempts = sorted(raw["trials"].to_pylist(), key=_when)
    studies = sorted(name for name, ids in _studies(folder).items() if trial_id in ids)
    return OneTrial(
        trial_id=trial_id,
        store=folder.where,
        studies=tuple(studies),
        attempts=tuple(attempts),
        scores=tuple(once["scores"].to_pylist()),
        similarity=tuple(once["similarity"].to_pylist()),
        curves=tuple(sorted(once["curves"].to_pylist(), key=lambda row: row["epoch"])),
        checkpoints=tuple(folder.files(f"checkpoints/{trial_id}")),
    )


def _raw(folder: Folder, trial_id: str) -> dict[str, pa.Table]:
    """All rows of one trial, superseded ones included."""
    wanted = pa.array([trial_id], pa.string())
    for _ in range(TRIES):
        # In this order no commit is missed: one that is gone from the list is in the parts.
        files = _commits(folder, f"commits/{trial_id[:2]}")
        ours = {i: file for i, file in files.items() if trial_of(i) == trial_id}
        current = Current.read(folder)
        try:
            pieces: list[Mapping[str, pa.Table]] = [
                {name: read_part(folder, part, name, trial_ids=wanted) for name in TABLES}
                for part in current.parts
            ]
            return stack([*pieces, read_commits(folder, ours).tables])
        except FileNotFoundError:
            continue  # compacted under our eyes
    raise vanished(folder, current)


def _commits(folder: Folder, below: str) -> dict[str, File]:
    """Commit id -> file; what is no commit is the business of commands that count trials."""
    named = ((COMMIT_NAME.fullmatch(file.path), file) for file in folder.files(below))
    return {match[1]: file for match, file in named if match}


def _studies(folder: Folder) -> dict[str, frozenset[str]]:
    """Study of the store -> ids of the trials that it asked for when it was run last."""
    found = {}
    for file in folder.files("studies"):
        _, _, rest = file.path.partition("/")
        name, _, inner = rest.partition("/")
        if inner != "trials.json":
            continue
        try:
            found[name] = frozenset(map(str, json.loads(folder.read(file.path))))
        except (ValueError, TypeError, FileNotFoundError):
            continue  # replaced or removed this moment; the rows themselves say all that counts
    return found


def _told_apart(ids: Sequence[str]) -> int:
    """The shortest length at which all ids differ, at least eight letters."""
    longest = max(map(len, ids))
    lengths = range(8, longest)
    return next((n for n in lengths if len({i[:n] for i in ids}) == len(ids)), longest)


def _hint(wanted: str, ids: frozenset[str]) -> str:
    length = max(4, len(wanted))
    short = {i[:length]: i for i in sorted(ids)}
    close = difflib.get_close_matches(wanted, short, n=1) if _ID.fullmatch(wanted) else []
    meant = f" Did you mean '{short[close[0]][:12]}'?" if close else ""
    return (
        f"{meant} It holds {len(ids)} trials; `sweep status STUDY --trials` lists those of a study."
    )


def _when(row: Mapping[str, Any]) -> float:
    moment = row["finished"] or row["started"]
    return moment.timestamp() if moment else 0.0
