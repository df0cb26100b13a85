"""What is known already and what is left: committed rows in, the rest of a request out."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.columns import coded
from analysis.layout import (
    Current,
    File,
    Folder,
    Part,
    commit_ids,
    concat,
    read_commits,
    read_part,
)
from analysis.rowfiles import conform
from analysis.schema import LEAN, TABLES
from analysis.tables import TRIES, Tables, deduplicate, job_of, stack, vanished, without
from sweep.commit import KEPT
from sweep.wanted import Key, Wants, pair
from trainables.spec import Request, TrialSpec

_CHUNKS = 64  # looks at single commits that are put together now and then

_ASKED = {  # what deciding needs
    "trials": ["trial_id", "commit_id", "status", "kept", "pruned_at"],
    "scores": ["trial_id", "data_key"],
    "similarity": ["trial_id", "state", "source_key", "target_key", "measure"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a job failed, last; a job that was done since has none.

    Attributes:
        job_id: The job.
        trial_id: Its trial.
        kind: `user`, `out-of-memory`, `preempted` or `unknown`.
        message: For people.
        traceback: Where; may be empty.
        attempt: Which attempt it was.
        host: Where it ran.
        finished: When it ended; None where unknown.
    """

    job_id: str
    trial_id: str
    kind: str
    message: str
    traceback: str
    attempt: int
    host: str
    finished: datetime | None


class Ledger:
    """What the committed rows of a store say. Reads only; any number may look at one store.

    Built with what is there; `refresh` takes in what has come since. Memory: about 1 kB a trial,
    as trials that measured the same things share one set of keys.

    Args:
        store: Local path or URI of the result store; it need not exist yet.

    Raises:
        TableError: a compacted table is torn, foreign or of another version.
    """

    def __init__(self, store: str | Folder) -> None:
        self._folder = store if isinstance(store, Folder) else Folder(store)
        self._parts: set[str] = set()
        self._unkeyed: list[Part] = []  # whose measurements nobody has asked for yet
        self._taking_in = threading.Lock()  # one thread refreshes while another asks
        self._absorbed: set[str] = set()  # commits in those parts
        self._loose = concat([])  # rows of the commits in no part
        self._loose_ids: set[str] = set()
        self._bad: set[File] = set()
        self._said: set[str] = set()
        self._trained: set[str] = set()
        self._kept: set[str] = set()
        self._done: set[str] = set()  # job ids
        self._pruned: dict[str, int] = {}
        self._failures: dict[str, Failure] = {}
        self._have: dict[str, frozenset[Key]] = {}
        self._shared: dict[frozenset[Key], frozenset[Key]] = {}
        self._wants = Wants()
        self.refresh()

    def refresh(self) -> tuple[str, ...]:
        """Take in what was committed since the last look; costs what is new.

        Returns:
            Ids of the commits that are new, sorted.

        Raises:
            TableError: a compacted table is torn, foreign or of another version.
        """
        for _ in range(TRIES):
            # In this order no commit is missed: one that is gone from the list is in the parts.
            files = commit_ids(self._folder.files("commits"), self._said)
            current = Current.read(self._folder)
            try:
                with self._taking_in:
                    return self._take_in(files, current)
            except FileNotFoundError:
                continue  # compacted under our eyes
        raise vanished(self._folder, current)

    def missing(self, trial_id: str, spec: TrialSpec, request: Request) -> Request | None:
        """What of a request is not known yet.

        Args:
            trial_id: Id of `spec`.
            spec: The trial.
            request: What is to be measured on it.

        Returns:
            None when nothing is left; the whole request for a trial that was never trained; else
            the targets without scores and the least request that holds all absent comparisons.
        """
        if trial_id not in self._trained:
            return request
        self._note_parts()
        have = self._have.get(trial_id, frozenset())
        return self._wants.rest(request, have, is_probe=spec.train is None)

    def trial_ids(self) -> set[str]:
        """Trials of which anything is committed, were it a failure."""
        failed = (failure.trial_id for failure in self._failures.values())
        return self._trained.union(self._pruned, failed)

    def has_trained(self, trial_id: str) -> bool:
        """Whether the trial itself is committed, unpruned."""
        return trial_id in self._trained

    def has_weights(self, trial_id: str) -> bool:
        """Whether its best weights were kept and are still there."""
        path = f"checkpoints/{trial_id}/{KEPT}"
        return trial_id in self._kept and self._folder.exists(path)

    def has_done(self, job_id: str) -> bool:
        """Whether a job has committed its whole result."""
        return job_id in self._done

    @property
    def has_loose(self) -> bool:
        """Whether some commits have not been taken into tables yet."""
        return bool(self._loose_ids)

    def pruned(self) -> Mapping[str, int]:
        """Trials that were stopped early and never trained in full -> the epoch of their end."""
        return {trial: at for trial, at in self._pruned.items() if trial not in self._trained}

    def failures(self) -> tuple[Failure, ...]:
        """How each job failed that was not done since, by job id."""
        left = self._failures.items()
        return tuple(failure for job, failure in sorted(left) if job not in self._done)

    def table(self, name: str, trial_ids: Collection[str] | None = None) -> pa.Table:
        """One table, each measurement once; see `analysis.tables.deduplicate`.

        Args:
            name: Name in `analysis.schema`.
            trial_ids: Only these trials; None for all.
        """
        return self._read({"trials", name}, trial_ids)[name]

    def tables(self, trial_ids: Collection[str] | None = None, *, is_lean: bool = False) -> Tables:
        """All four tables, as of the last refresh.

        Args:
            trial_ids: Of these trials; None for all.
            is_lean: As `schema.LEAN` has them, for the analysis of millions of rows.
        """
        return Tables(**self._read(TABLES.keys(), trial_ids, is_lean=is_lean))

    def _read(
        self,
        names: Collection[str],
        trial_ids: Collection[str] | None,
        *,
        is_lean: bool = False,
    ) -> dict[str, pa.Table]:
        wanted = None if trial_ids is None else pa.array(sorted(trial_ids), pa.string())
        for _ in range(TRIES):
            current = Current.read(self._folder)
            try:
                pieces: list[dict[str, pa.Table]] = [
                    {n: self._part(part, n, wanted, is_lean=is_lean) for n in names}
                    for part in current.parts
                ]
            except FileNotFoundError:
                continue
            loose = {name: self._loose[name] for name in names}
            if wanted is not None:
                loose = {
                    name: rows.filter(pc.is_in(rows.column("trial_id"), wanted))
                    for name, rows in loose.items()
                }
            if is_lean:
                loose = {name: conform(rows, LEAN[name], name) for name, rows in loose.items()}
            return deduplicate(stack([*pieces, loose]))
        raise vanished(self._folder, current)

    def _part(self, part: Part, name: str, wanted: pa.Array | None, *, is_lean: bool) -> pa.Table:
        columns = LEAN[name].names if is_lean else None
        rows = read_part(self._folder, part, name, columns=columns, trial_ids=wanted)
        return conform(rows, LEAN[name], part.path(name)) if is_lean else rows

    def _take_in(self, files: Mapping[str, File], current: Current) -> tuple[str, ...]:
        """Read first, note after: an exception in between leaves the ledger as it was."""
        parts = [part for part in current.parts if part.name not in self._parts]
        columns = _ASKED["trials"]
        read = [read_part(self._folder, part, "trials", columns=columns) for part in parts]
        failed: list[pa.Table] = []
        for part, trials in zip(parts, read, strict=True):
            bad = trials.filter(pc.equal(trials.column("status"), "failed"))
            if len(bad):
                ids = bad.column("trial_id").cast(pa.string()).combine_chunks()
                failed.append(read_part(self._folder, part, "trials", trial_ids=ids))
        commits = [set(trials.column("commit_id").to_pylist()) for trials in read]
        taken = set().union(*commits)
        before = self._absorbed | self._loose_ids
        unkeyed = [part for part, own in zip(parts, commits, strict=True) if own - before]
        known = before | taken
        new = {i: f for i, f in files.items() if i not in known and f not in self._bad}
        loose = read_commits(self._folder, new)
        fresh = (taken | loose.ids) - self._absorbed - self._loose_ids

        self._parts |= {part.name for part in parts}
        self._unkeyed += unkeyed
        self._absorbed |= taken
        if self._loose_ids & taken:
            self._loose = without(self._loose, self._loose_ids & taken)
        if loose.ids:
            both = concat([self._loose, loose.tables])
            many = both["trials"].column(0).num_chunks > _CHUNKS
            self._loose = {n: rows.combine_chunks() if many else rows for n, rows in both.items()}
        self._loose_ids = (self._loose_ids - taken) | loose.ids
        self._bad.update(loose.bad)
        for rows in (*read, loose.tables["trials"]):
            self._note_trials(rows)
        self._note_keys(loose.tables["scores"], loose.tables["similarity"])
        for rows in (*failed, loose.tables["trials"]):
            self._note_failures(rows)
        return tuple(sorted(fresh))

    def _note_trials(self, rows: pa.Table) -> None:
        columns = (rows.column(name).to_pylist() for name in _ASKED["trials"])
        for trial, commit, status, kept, pruned_at in zip(*columns, strict=True):
            if status == "done":
                self._done.add(commit)
                if commit == trial:
                    self._trained.add(trial)
                if kept:
                    self._kept.add(trial)
            elif status == "pruned":
                self._pruned[trial] = pruned_at

    def _note_parts(self) -> None:
        """Read what compacted trials have measured, once somebody asks: a report never does."""
        if not self._unkeyed:
            return
        names = "scores", "similarity"
        for _ in range(TRIES):
            with self._taking_in, suppress(FileNotFoundError):
                while self._unkeyed:
                    part = self._unkeyed[-1]
                    tables = (read_part(self._folder, part, n, columns=_ASKED[n]) for n in names)
                    self._note_keys(*tables)
                    self._unkeyed.pop()
                return
            # Compacted under our eyes: what was in it is in those of now.
            with self._taking_in:
                self._unkeyed = list(Current.read(self._folder).parts)
        raise vanished(self._folder, Current.read(self._folder))

    def _note_keys(self, scores: pa.Table, similarity: pa.Table) -> None:
        of_scores = _keys_by_trial(scores, _ASKED["scores"], lambda key: key)
        of_pairs = _keys_by_trial(similarity, _ASKED["similarity"], pair)
        for trial, keys in (*of_scores, *of_pairs):
            whole = self._have.get(trial, frozenset()) | keys
            self._have[trial] = self._shared.setdefault(whole, whole)

    def _note_failures(self, rows: pa.Table) -> None:
        for row in rows.filter(pc.equal(rows.column("status"), "failed")).to_pylist():
            failure = _failure(row)
            before = self._failures.get(failure.job_id)
            if before is None or _when(before) <= _when(failure):
                self._failures[failure.job_id] = failure


def _keys_by_trial(
    rows: pa.Table, columns: list[str], key: Callable[..., Key]
) -> Iterator[tuple[str, frozenset[Key]]]:
    """Each trial with the keys of its rows; trials with the same ones share them.

    Args:
        rows: Without nulls in these columns.
        columns: The trial's id, then what makes a key.
        key: Makes one.
    """
    groups = rows.select(columns).group_by(columns).aggregate([])
    trial, *parts = (coded(groups.column(name)) for name in columns)
    mixed = np.zeros(len(groups), np.int64)
    for part in parts:
        mixed = mixed * len(part.names) + part.codes
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    keys = [key(*(part.names[part.codes[at]] for part in parts)) for at in first]
    order = np.lexsort((which, trial.codes))
    which = which[order]
    bounds = np.searchsorted(trial.codes[order], np.arange(len(trial.names) + 1))
    known: dict[bytes, frozenset[Key]] = {}
    for name, low, high in zip(trial.names, bounds[:-1], bounds[1:], strict=True):
        own = which[low:high]
        if (mark := own.tobytes()) not in known:
            known[mark] = frozenset(keys[i] for i in own)
        yield name, known[mark]


def _failure(row: Mapping[str, Any]) -> Failure:
    return Failure(
        job_id=job_of(row["commit_id"]),
        trial_id=row["trial_id"],
        kind=row["failure_kind"] or "unknown",
        message=row["failure"] or "",
        traceback=row["traceback"] or "",
        attempt=row["attempt"],
        host=row["host"] or "",
        finished=row["finished"],
    )


def _when(failure: Failure) -> float:
    return failure.finished.timestamp() if failure.finished else 0.0
