"""Counts of single sentences, found for the trials and test sets of a block."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int

from analysis.blocks import Block
from analysis.cells import NAMES_OF_A_COLUMN, Scored
from analysis.columns import coded, integers, positions
from analysis.packed import unpack
from analysis.roster import Roster

_CLOSE = 1e-9
"""Counts and score agree up to the rounding of one division."""


@dataclass(frozen=True, slots=True)
class TestSet:
    """Counts of every trial of a block on one test set; trials are ablation x seed.

    Attributes:
        right: What a score's numerator sums: words got right, twice the spans got right.
        whole: What its denominator sums, for all trials or for each; spans predicted count.
        there: Whether a trial has counts that give its very score.
    """

    right: Float[np.ndarray, "trials k"]
    whole: Float[np.ndarray, "*trials k"]
    there: Bool[np.ndarray, " trials"]

    def values(self, weights: Float[np.ndarray, "draws k"]) -> Float[np.ndarray, "draws trials"]:
        """Scores when each sentence counts so often; NaN for trials without counts."""
        right, whole = weights @ self.right.T, weights @ self.whole.T
        if whole.ndim == 1:
            whole = whole[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            found = right.astype(np.float64) / whole
        # F1 of no span at all is 0; an accuracy over no word is undefined, and takes no part.
        if self.whole.ndim == 2:  # noqa: PLR2004 - a row a trial: spans
            found = np.where(whole == 0, 0.0, found)
        return np.where(self.there, found, np.nan)


class Counted:
    """The counts of a study, looked up by trial and test set.

    Args:
        rows: Rows of `schema.SENTENCES`.
        known: Who took part.
        found: Scores that the counts belong to.
    """

    def __init__(self, rows: pa.Table, known: Roster, found: Scored) -> None:
        self._n = integers(rows["n"])
        self._blobs = {name: _Blobs.of(rows[name]) for name in ("items", "missed", "spurious")}
        self._columns = found.columns
        trials = positions(rows["trial_id"], [trial.trial_id or "-" for trial in known.trials])
        columns = _column_of_each(rows, {key: i for i, key in enumerate(found.keys)})
        self._at = {
            (int(trial), int(column)): row
            for row, (trial, column) in enumerate(zip(trials, columns, strict=True))
            if trial >= 0 and column >= 0
        }
        self.n_off = 0
        """Trials on a test set whose counts do not give their score, so far; they were not used."""

    def of(self, block: Block) -> tuple[TestSet | None, ...] | None:
        """Counts of each test set of a block; None where a set has none, or no set has."""
        if not self._at:
            return None
        columns: dict[str, list[int]] = {}
        for i, column in enumerate(self._columns):
            if (column.split, column.family, column.metric) == (
                "test",
                block.family,
                block.metric,
            ):
                columns.setdefault(column.treebank, []).append(i)
        sets = tuple(
            self._test_set(block, t, columns.get(treebank, []))
            for t, treebank in enumerate(block.treebanks)
        )
        return sets if any(found is not None for found in sets) else None

    def _test_set(self, block: Block, target: int, columns: list[int]) -> TestSet | None:
        trials = block.lineup.trials.ravel()
        scores = block.values[:, target].ravel()
        found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for i, trial in enumerate(trials):
            row = next((self._at[trial, c] for c in columns if (trial, c) in self._at), None)
            if row is None or math.isnan(scores[i]):
                continue
            right, whole = self._counts(row)
            total = float(whole.sum())  # whole numbers: exact, also in single precision
            if abs((float(right.sum()) / total if total else 0.0) - scores[i]) > _CLOSE:
                self.n_off += 1
                continue
            found[i] = right, whole
        if len({len(right) for right, _ in found.values()}) != 1:
            return None  # none, or of files of several sizes, which cannot be drawn together
        n = len(next(iter(found.values()))[0])
        right, whole = np.zeros((2, len(trials), n), np.float32)
        for i, pair in found.items():
            right[i], whole[i] = pair
        there = np.zeros(len(trials), bool)
        there[list(found)] = True
        first = whole[next(iter(found))]
        is_shared = bool((whole[there] == first).all())
        return TestSet(right, first if is_shared else whole, there)

    def _counts(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """What numerator and denominator of a score sum, sentence by sentence."""
        n = int(self._n[row])
        blobs = {name: blob.at(row) for name, blob in self._blobs.items()}
        items, missed, spurious = (
            None if blob is None else unpack(blob, n).astype(np.float32) for blob in blobs.values()
        )
        assert items is not None  # noqa: S101 - the schema allows no null
        assert missed is not None  # noqa: S101 - as above
        right = items - missed
        return (right, items) if spurious is None else (2 * right, items + right + spurious)


@dataclass(frozen=True, slots=True)
class _Blobs:
    """A column of bytes, looked at where it lies: copying each value would cost more than using it.

    Attributes:
        offsets: Where each value begins, and the end of the last one.
        data: All values.
        there: Which rows have one.
    """

    offsets: Int[np.ndarray, " rows1"]
    data: memoryview
    there: Bool[np.ndarray, " rows"]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "_Blobs":
        whole = column.cast(pa.large_binary()).combine_chunks()
        if isinstance(whole, pa.ChunkedArray):  # an empty column has no chunk to combine
            whole = pa.array([], pa.large_binary())
        _, offsets, data = whole.buffers()
        at = np.frombuffer(offsets, np.int64) if offsets else np.zeros(1, np.int64)
        there = whole.is_valid().to_numpy(zero_copy_only=False)
        return cls(at[whole.offset :], memoryview(data or b""), there)

    def at(self, row: int) -> memoryview | None:
        """The bytes of one row; None where it is null."""
        return self.data[self.offsets[row] : self.offsets[row + 1]] if self.there[row] else None


def _column_of_each(rows: pa.Table, place: Mapping[tuple[str, ...], int]) -> np.ndarray:
    """Index of the scored column that each row belongs to; -1 for none."""
    parts = [coded(rows[name]) for name in NAMES_OF_A_COLUMN]
    if not len(rows):
        return np.zeros(0, np.int64)
    stacked = np.stack([part.codes for part in parts])
    distinct, which = np.unique(stacked, axis=1, return_inverse=True)
    columns = [
        place.get(tuple(part.names[i] for part, i in zip(parts, codes, strict=True)), -1)
        for codes in distinct.T
    ]
    return np.array(columns, np.int64)[which.ravel()]
