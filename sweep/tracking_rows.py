"""Tables cut into trials: what the trackers read, one trial at a time, memory flat."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

Row = Mapping[str, Any]


class Rows(Protocol):
    """Four tables of `analysis.schema`, of any number of trials (`analysis.tables.Tables`)."""

    @property
    def trials(self) -> pa.Table:
        """One row a trial."""

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
    """The rows of one trial, as plain values; `similarity` stays a table."""

    trial: Row
    scores: Sequence[Row]
    similarity: pa.Table
    curves: Sequence[Row]


def by_trial(rows: Rows) -> Iterator[TrialRows]:
    """Cut the tables into trials, one at a time, in the order of their ids."""
    trials = rows.trials.sort_by("trial_id")
    parts = {
        name: _sorted_slices(getattr(rows, name)) for name in ("scores", "similarity", "curves")
    }
    for trial in _row_by_row(trials):
        of_trial = {
            name: table.slice(*slices.get(trial["trial_id"], (0, 0)))
            for name, (table, slices) in parts.items()
        }
        yield TrialRows(
            trial=trial,
            scores=of_trial["scores"].to_pylist(),
            similarity=of_trial["similarity"],
            curves=of_trial["curves"].to_pylist(),
        )


def _row_by_row(table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches(max_chunksize=256):
        yield from batch.to_pylist()


def _sorted_slices(table: pa.Table) -> tuple[pa.Table, dict[str, tuple[int, int]]]:
    """Sort by trial and say where each one starts and how long it is."""
    table = table.sort_by("trial_id")
    counts = pc.value_counts(table["trial_id"]).to_pylist()
    slices, start = {}, 0
    for count in sorted(counts, key=lambda count: count["values"]):
        slices[count["values"]] = (start, count["counts"])
        start += count["counts"]
    return table, slices
