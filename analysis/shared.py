"""Subword overlap of test sets with the training set, held against the scores of a block."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from analysis.blocks import Block
from analysis.cells import Scored
from analysis.gaps import over_seeds
from analysis.overlap import Pearson, pearson
from analysis.roster import Roster

KINDS = ("types", "tokens")
"""Two ways to count: distinct subwords, and each as often as it occurs."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Overlap and zero-shot scores of the reference models of one block, the source left out.

    Attributes:
        block: Whose scores.
        targets: Positions of the test sets in the block.
        overlap: `types` and `tokens` -> what part of each test set's subwords training has seen.
        n_types: Distinct subwords of each test set.
        n_tokens: All of them.
        score: Mean over seeds.
        correlation: `types` and `tokens` -> Pearson's r of overlap and score.
    """

    block: Block
    targets: tuple[int, ...]
    overlap: Mapping[str, Float[np.ndarray, " t"]]
    n_types: Int[np.ndarray, " t"]
    n_tokens: Int[np.ndarray, " t"]
    score: Float[np.ndarray, " t"]
    correlation: Mapping[str, Pearson]


class Overlaps:
    """The overlaps that a store knows, looked up by block.

    Args:
        rows: Rows of `schema.OVERLAP`.
        trials: Rows of `schema.TRIALS`.
        known: Who took part.
        found: Scores.
    """

    def __init__(self, rows: pa.Table, trials: pa.Table, known: Roster, found: Scored) -> None:
        self._rows = {
            (row["encoder_fingerprint"], row["train_key"], row["data_key"]): row
            for row in rows.to_pylist()
        }
        self._train = _train_keys(trials, known) if self._rows else {}
        self._known, self._found = known, found

    def of(self, block: Block) -> Shared | None:
        """Overlap and scores of a block; None without a reference, or where nothing was counted."""
        reference, setting = block.lineup.reference, block.lineup.setting
        if reference is None or setting not in self._train:
            return None
        whose = self._known.settings[setting].fingerprint, self._train[setting]
        keys = {
            column.treebank: names[3]
            for column, names in zip(self._found.columns, self._found.keys, strict=True)
            if (column.split, column.family, column.metric) == ("test", block.family, block.metric)
        }
        counted = {
            t: self._rows[*whose, keys[block.treebanks[t]]]
            for t in block.others
            if (*whose, keys.get(block.treebanks[t], "")) in self._rows
        }
        if not counted:
            return None
        at = list(counted)
        score = over_seeds(block.values[reference]).mean[at]
        overlap = {kind: np.array([row[kind] for row in counted.values()]) for kind in KINDS}
        return Shared(
            block,
            tuple(at),
            overlap,
            np.array([row["n_types"] for row in counted.values()]),
            np.array([row["n_tokens"] for row in counted.values()]),
            score,
            {kind: pearson(overlap[kind], score) for kind in KINDS},
        )


def _train_keys(trials: pa.Table, known: Roster) -> dict[int, str]:
    """Setting -> the key of what its trials were trained on."""
    some = {trial.trial_id: trial.setting for trial in known.trials if trial.trial_id}
    first: dict[int, str] = {}
    for trial_id, spec in zip(
        trials["trial_id"].to_pylist(), trials["spec"].to_pylist(), strict=True
    ):
        setting = some.get(trial_id)
        if setting is not None and setting not in first:
            first[setting] = data_key((json.loads(spec or "{}") or {}).get("train") or {})
    return first


def data_key(ref: Mapping[str, Any]) -> str:
    """What was read, in one word, as rows name it (`trainables.spec.DataRef.key`)."""
    limit, skip = ref.get("limit"), ref.get("skip") or 0
    fingerprint = str(ref.get("fingerprint", ""))
    if limit is None and not skip:
        return fingerprint
    return f"{fingerprint}[{skip or ''}:{'' if limit is None else skip + limit}]"
