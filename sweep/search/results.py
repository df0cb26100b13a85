"""What became of trials that a search or an interval waits for: from committed rows, not memory.

So a driver that was killed knows, when it is started again, what the one before it knew.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa

from analysis.layout import decode_commit
from analysis.rowfiles import explode
from sweep.commit import commit_path
from sweep.ledger import Ledger
from sweep.rows import pruned_id
from sweep.storage import Store
from trainables.spec import Job

Score = tuple[str, str]
"""What was scored by which metric: `DataRef.key`, name."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a trial came to.

    Attributes:
        state: `done`; `pruned` (stopped early); `failed` (for good).
        curve: Epoch -> score on source dev.
        metric: Of that score.
    """

    state: Literal["done", "pruned", "failed"]
    curve: Mapping[int, float] = field(default_factory=dict)
    metric: str = ""

    @property
    def value(self) -> float:
        """What a search maximises: source dev at the best epoch; -inf where there is none."""
        values = [value for value in self.curve.values() if not math.isnan(value)]
        return max(values, default=-math.inf)


FAILED = Told("failed")


class Results(Protocol):
    """Knows the ends of trials."""

    def of(self, trial_id: str) -> Told | None:
        """What is committed of a trial; None while it is still to be run."""
        ...

    def after(self, job: Job, pruned_at: int | None) -> Told | None:
        """What a job that ended well has just committed.

        Args:
            job: The job.
            pruned_at: The epoch after which it was stopped; None if it was not.
        """
        ...

    def scores(self, trial_id: str) -> Mapping[Score, float]:
        """Scores of a trial that is done."""
        ...


class NoResults:
    """Nothing has ever run."""

    def of(self, trial_id: str) -> Told | None:  # noqa: ARG002 - see `Results`
        """Nothing."""
        return None

    def after(self, job: Job, pruned_at: int | None) -> Told | None:  # noqa: ARG002 - see `Results`
        """Nothing."""
        return None

    def scores(self, trial_id: str) -> Mapping[Score, float]:  # noqa: ARG002 - see `Results`
        """None."""
        return {}


class RehearsedResults:
    """Ends that a rehearsal makes up: it says them here before it tells the schedule."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}
        self._scores: dict[str, Mapping[Score, float]] = {}

    def say(self, trial_id: str, told: Told, scores: Mapping[Score, float] | None = None) -> None:
        """What a trial came to."""
        self._told[trial_id] = told
        self._scores[trial_id] = scores or {}

    def of(self, trial_id: str) -> Told | None:
        """See `Results`."""
        return self._told.get(trial_id)

    def after(self, job: Job, pruned_at: int | None) -> Told | None:  # noqa: ARG002 - see `Results`
        """See `Results`."""
        return self._told.get(job.trial_id)

    def scores(self, trial_id: str) -> Mapping[Score, float]:
        """See `Results`."""
        return self._scores.get(trial_id, {})


class CommittedResults:
    """Results from the rows of a store.

    Args:
        ledger: What the store knew when the run began. What comes later is read from the files of
            its commits, as the ledger has another reader then.
        store: The store.
        takes_pruned: A trial that was stopped early has ended; else it is to be run in full.
    """

    def __init__(self, ledger: Ledger, store: Store, *, takes_pruned: bool = False) -> None:
        self._ledger = ledger
        self._store = store
        self._pruned = frozenset(ledger.pruned()) if takes_pruned else frozenset()
        self._told: dict[str, Told] = {}
        self._scores: dict[str, dict[Score, float]] = {}
        # The same spec fails so every time: a point that cannot be trained.
        self._told |= {
            failure.trial_id: FAILED
            for failure in ledger.failures()
            if failure.kind == "user" and not ledger.has_trained(failure.trial_id)
        }

    def prepare(self, trial_ids: Collection[str], *, with_scores: bool = False) -> None:
        """Read the rows of many trials at once."""
        names = ("trials", "curves", "scores") if with_scores else ("trials", "curves")
        new = [i for i in trial_ids if self._is_known(i) and not self._is_read(i, with_scores)]
        if new:
            self._note({name: self._ledger.table(name, new) for name in names}, new)

    def of(self, trial_id: str) -> Told | None:
        """See `Results`."""
        if trial_id not in self._told and self._is_known(trial_id):
            self.prepare([trial_id])
        return self._told.get(trial_id)

    def scores(self, trial_id: str) -> Mapping[Score, float]:
        """See `Results`."""
        self.prepare([trial_id], with_scores=True)
        return self._scores.get(trial_id, {})

    def after(self, job: Job, pruned_at: int | None) -> Told | None:
        """See `Results`."""
        names = [pruned_id(job.job_id, pruned_at)] if pruned_at is not None else []
        for commit_id in [*names, job.job_id]:
            path = commit_path(commit_id)
            try:
                row = decode_commit(self._store.read(path), commit_id, path)
            except FileNotFoundError:
                continue
            self._note(explode(row), [job.trial_id])
            break
        else:  # taken into the tables a moment ago
            found = Ledger(self._store)
            names = ["trials", "curves", "scores"]
            self._note({name: found.table(name, [job.trial_id]) for name in names}, [job.trial_id])
        return self._told.get(job.trial_id)

    def _is_known(self, trial_id: str) -> bool:
        return self._ledger.has_trained(trial_id) or trial_id in self._pruned

    def _is_read(self, trial_id: str, with_scores: bool) -> bool:
        return trial_id in (self._scores if with_scores else self._told)

    def _note(self, tables: Mapping[str, pa.Table], trial_ids: Collection[str]) -> None:
        curves: dict[str, dict[int, float]] = {}
        metrics: dict[str, str] = {}
        for row in tables["curves"].to_pylist():
            curves.setdefault(row["trial_id"], {})[row["epoch"]] = row["dev_value"]
            metrics[row["trial_id"]] = row["dev_metric"]
        for row in tables["trials"].to_pylist():
            trial, state = row["trial_id"], row["status"]
            if state in {"done", "pruned"}:
                self._told[trial] = Told(state, curves.get(trial, {}), metrics.get(trial, ""))
        if "scores" in tables:
            for trial in trial_ids:
                self._scores.setdefault(trial, {})
            for row in tables["scores"].to_pylist():
                own = self._scores.setdefault(row["trial_id"], {})
                own[row["data_key"], row["metric"]] = row["value"]
