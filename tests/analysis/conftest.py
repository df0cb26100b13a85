"""Made-up tables in the shape of a real study; no file, no model."""

import json
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from analysis.schema import CURVES, SCORES, SIMILARITY, TRIALS
from analysis.tables import Tables

LANGUAGES = ("en", "fr", "de", "ru", "ar", "hi", "tr", "zh", "th", "ko")
REF = (95.1, 86.6, 87.2, 88.3, 72.0, 70.3, 73.6, 67.1, 66.3, 65.1)
DELTAS: Mapping[str, tuple[float, ...]] = {
    "ref": (0.0,) * 10,
    "reinit:1-2": (-2.3, -26.5, -24.3, -8.4, -7.4, -5.2, -14.9, -5.9, -5.2, -8.2),
    "reinit:3-4": (-1.7, -2.7, -8.8, -3.5, -5.6, -5.6, -5.3, -1.3, -4.1, -2.0),
    "reinit:5-6": (-0.5, -0.9, -1.8, -0.3, -0.8, -2.2, -1.7, -0.2, -1.8, 2.3),
    "reinit:7-8": (-0.1, -0.4, -0.4, -0.2, -0.7, -1.8, -0.8, 0.6, -0.2, 1.6),
    "reinit:9-10": (0.1, -0.7, -2.0, -0.9, -1.0, -1.2, -1.6, 1.2, -2.6, -1.5),
    "reinit:11-12": (0.9, 1.4, 0.0, 0.3, 1.4, 2.0, 0.5, 2.3, -0.8, 1.8),
}
"""Ablation -> points lost by language: the first real measurements of this project, rounded."""

PRETRAINED = (52, 59, 65, 70, 74, 77, 79, 79, 78, 77, 78, 74, 76)
TUNED = (52, 59, 63, 66, 67, 67, 66, 63, 63, 61, 58, 57, 57)
LOWER = (53, 54, 54, 55, 59, 63, 63, 61, 59, 54, 51, 49, 50)
NEARNESS = (0.0, 0.08, 0.09, 0.05, -0.02, -0.05, -0.01, -0.04, -0.06, -0.05)

Make = Callable[..., Tables]


@pytest.fixture(scope="session")
def make_tables() -> Make:
    """A builder of tables: one UPOS study from English, with real-looking numbers."""
    return build


def build(
    seeds: Sequence[int] = (0,),
    *,
    noise: float = 0.0,
    ablations: Collection[str] = tuple(DELTAS),
    languages: Sequence[str] = LANGUAGES,
    failed: Collection[tuple[str, int]] = (),
    absent: Collection[tuple[str, int]] = (),
    study: str = "first-align-small",
    encoder: str = "me5-small",
    tasks: Sequence[str] = ("upos",),
    similarity: bool = True,
    score: Callable[[str, int, str], float] | None = None,
) -> Tables:
    """Make the four tables of a study.

    Args:
        seeds: Seeds of every ablation.
        noise: Standard deviation of a score over seeds, in points.
        ablations: Which ablations, keys of `DELTAS`.
        languages: Which test languages.
        failed: (ablation, seed) of trials that failed.
        absent: (ablation, seed) of trials that nobody ran.
        study: Its name.
        encoder: Its encoder's name.
        tasks: Its tasks, all with the same numbers.
        similarity: Whether similarities were measured.
        score: (ablation, seed, language) -> fraction, in place of the built-in numbers.
    """
    made: dict[str, list[dict[str, Any]]] = {
        "trials": [],
        "scores": [],
        "similarity": [],
        "curves": [],
    }
    if similarity:
        _probe(made, study, encoder, languages)
    for task in tasks:
        for ablation in ablations:
            for seed in seeds:
                if (ablation, seed) in absent:
                    continue
                row = trial_row(task, ablation, seed, study=study, encoder=encoder)
                if (ablation, seed) in failed:
                    row |= {"kind": "failed", "status": "failed", "failure_kind": "out-of-memory"}
                    row |= {"failure": "CUDA out of memory: tried <2.5 GiB>", "traceback": "..."}
                    row["commit_id"] += ".failed-1-00000000"
                made["trials"].append(row)
                if row["status"] != "failed":
                    _measure(made, row, languages, noise, score, similarity=similarity)
    return from_rows(made)


def from_rows(made: Mapping[str, list[dict[str, Any]]]) -> Tables:
    """Rows as dictionaries -> tables; absent columns are null."""
    schemas = {"trials": TRIALS, "scores": SCORES, "similarity": SIMILARITY, "curves": CURVES}
    return Tables(
        **{name: pa.Table.from_pylist(made[name], schema=schemas[name]) for name in schemas}
    )


def trial_row(
    task: str,
    ablation: str,
    seed: int,
    *,
    study: str = "s",
    encoder: str = "me5-small",
    **extra: Any,
) -> dict[str, Any]:
    """One row of `trials`, of a trial that is done."""
    hyper = extra.pop("hyper", {"learning_rate": 4e-4, "batch_size": 16, "epochs": 2})
    name = f"{study}|{encoder}|{task}|{ablation}|{seed}|{json.dumps(hyper)}"
    started = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(
        minutes=zlib.crc32(name.encode()) % 600
    )
    train = {"code": "en_ewt", "language": "en", "split": "train", "location": "train.conllu",
             "fingerprint": "sha256:aa", "limit": 2000}  # fmt: skip
    ref = {"name": encoder, "fingerprint": f"sha256:{encoder}", "n_layers": 12}
    spec = {"task": task, "encoder": ref, "source": "en", "train": train, "ablation": ablation,
            "hyper": hyper, "seed": seed, "options": {"max_length": 512},
            "precision": "fp32"}  # fmt: skip
    trial_id = _digest(name)
    cell = _digest(f"{encoder}{task}{ablation}")
    return {
        "trial_id": trial_id, "commit_id": trial_id, "kind": "train", "status": "done",
        "study": study, "task": task, "encoder": encoder, "source": "en", "train": "en_ewt",
        "encoder_fingerprint": f"sha256:{encoder}", "ablation": ablation, "seed": seed,
        "cell": cell, "hyper": json.dumps(hyper), "spec": json.dumps(spec), "attempt": 1,
        "best_epoch": 2,
        "device": "cpu", "threads": 1, "host": "node-1", "started": started,
        "finished": started + timedelta(seconds=254), "load_s": 1.5, "train_s": 160.25,
        "evaluate_s": 80.0, "similarity_s": 12.0, "peak_memory": 3_200_000_000,
        "train_words_per_s": 480.0, "resumed_epochs": 0, "n_train": 2000, "n_reinitialised": 0,
        "n_parameters": 33_000_000, "n_frozen": 0, "git_commit": "0123456789abcdef" * 2,
        "versions": json.dumps({"torch": "2.13.0", "transformers": "5.23.0", "python": "3.11.9"}),
        **extra,
    }  # fmt: skip


def _digest(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}{zlib.adler32(text.encode()):08x}"


def _probe(made: dict[str, Any], study: str, encoder: str, languages: Sequence[str]) -> None:
    row = trial_row("probe", "ref", 0, study=study, encoder=encoder, source="", train="")
    made["trials"].append(row)
    _similarities(made, row["trial_id"], "pretrained", PRETRAINED, languages, 0.0)


def _measure(
    made: dict[str, Any],
    row: Mapping[str, Any],
    languages: Sequence[str],
    noise: float,
    score: Callable[[str, int, str], float] | None,
    *,
    similarity: bool,
) -> None:
    ablation, seed, trial_id = row["ablation"], row["seed"], row["trial_id"]
    rng = np.random.default_rng(zlib.crc32(f"{row['task']}{ablation}{seed}".encode()))
    base = {"trial_id": trial_id, "commit_id": row["commit_id"]}
    for language in languages:
        i = LANGUAGES.index(language)
        points = REF[i] + DELTAS[ablation][i] + noise * rng.standard_normal()
        value = score(ablation, seed, language) if score else points / 100
        test = {"split": "test", "treebank": f"{language}_pud", "language": language,
                "data_key": f"sha256:{language}[:500]", "metric": "accuracy", "value": value,
                "n": 10_000}  # fmt: skip
        made["scores"].append({**base, **test})
    dev = {"split": "dev", "treebank": "en_ewt", "language": "en", "data_key": "sha256:dev",
           "metric": "accuracy", "value": 0.94, "n": 25_000}  # fmt: skip
    made["scores"].append({**base, **dev})
    for epoch, loss in enumerate((0.9, 0.3), 1):
        point = {"step": 125 * epoch, "epoch": epoch, "loss": loss, "dev_metric": "accuracy",
                 "dev_value": 0.93 + epoch / 200, "learning_rate": 4e-4 / epoch}  # fmt: skip
        made["curves"].append({**base, **point})
    if similarity:
        curve = LOWER if ablation == "reinit:1-2" else TUNED
        _similarities(made, trial_id, "fine-tuned", curve, languages, noise / 100)


def _similarities(  # noqa: PLR0917 - one call, spelt out, in a factory of tests
    made: dict[str, Any],
    trial_id: str,
    state: str,
    curve: Sequence[int],
    languages: Sequence[str],
    noise: float,
) -> None:
    rng = np.random.default_rng(zlib.crc32(trial_id.encode()))
    for language in languages:
        if language == "en":
            continue
        near = NEARNESS[LANGUAGES.index(language)]
        for layer, points in enumerate(curve):
            value = points / 100 + near * (0.5 + layer / 12) + noise * rng.standard_normal()
            made["similarity"].append({
                "trial_id": trial_id, "commit_id": trial_id, "state": state, "source": "en",
                "target": language, "source_key": "sha256:en", "target_key": f"sha256:{language}",
                "layer": layer, "measure": "linear-cka", "value": value, "n": 500,
                "null_mean": 0.28, "null_95": 0.29, "options": '{"kernel": "linear"}',
            })  # fmt: skip
