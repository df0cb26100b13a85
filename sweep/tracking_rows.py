"""Tables cut into trials: what the trackers read, one trial at a time, memory flat."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from analysis.schema import TABLES

Row = Mapping[str, Any]


class Rows(Protocol):
    """Four tables of `analysis.schema`, of any number of trials (`analysis.tables.Tables`)."""

    @property
    def trials(self) -> pa.Table:
        """One row a job: the training of a trial, and what was asked for later."""

    @property
    def scores(self) -> pa.Table:
        """One row a number."""

    @property
    def similarity(self) -> pa.Table:
        """One row a pair of languages and layer."""

    @property
    def curves(self) -> pa.Table:
        """One row an epoch."""


@dataclass(frozen=True, slots=True)
class TrialRows:
    """The rows of one trial, as plain values; `similarity` stays a table.

    Attributes:
        trial: How the trial itself ended: done before pruned before failed.
        failures: Rows of all that failed and was not done since, that of the trial included.
        scores: Its scores.
        similarity: Its similarities.
        curves: Its epochs.
    """

    trial: Row
    failures: Sequence[Row]
    scores: Sequence[Row]
    similarity: pa.Table
    curves: Sequence[Row]


_RANKS = {"done": 0, "pruned": 1, "failed": 2}


def n_trials(rows: Rows) -> int:
    """Count trials; one that was asked for more later has several rows."""
    return int(pc.count_distinct(rows.trials["trial_id"].cast(pa.string())).as_py())


def by_trial(rows: Rows) -> Iterator[TrialRows]:
    """Cut the tables into trials, one at a time, in the order of their ids."""
    parts = {name: _cut(getattr(rows, name)) for name in TABLES}
    for trial_id in sorted(parts["trials"][1]):
        of_trial = {
            name: table.slice(*places.get(trial_id, (0, 0)))
            for name, (table, places) in parts.items()
        }
        jobs = sorted(of_trial["trials"].to_pylist(), key=_rank)
        yield TrialRows(
            trial=jobs[0],
            failures=[job for job in jobs if job["status"] == "failed"],
            scores=of_trial["scores"].to_pylist(),
            similarity=of_trial["similarity"],
            curves=of_trial["curves"].to_pylist(),
        )


def _rank(job: Row) -> tuple[int, bool, str]:
    """Order the jobs of a trial: by how they ended, its training before later measurements."""
    return _RANKS[job["status"]], job["kind"] != "train", job["commit_id"]


def _cut(table: pa.Table) -> tuple[pa.Table, dict[str, tuple[int, int]]]:
    """Sort by trial and say where each one starts and how long it is."""
    ids = table["trial_id"].cast(pa.string())
    counts = sorted((c["values"], c["counts"]) for c in pc.value_counts(ids).to_pylist())
    places, start = {}, 0
    for trial_id, n in counts:
        places[trial_id] = (start, n)
        start += n
    return table.take(pc.sort_indices(ids)), places
