"""A study of tiny real files whose trials are made up: for benches of the machinery.

`start` does what `sweep.worker.start` does, less the training: it takes `XLING_BENCH_S` seconds of
sleep, then commits rows of the size that a real trial has.
"""

import json
import os
import time
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from sweep.commit import commit_result
from sweep.study import Study, build_study
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Facts, Job, Request, Score, Similarity, TrialResult

WORKER = "bench.madeup:start"
LANGUAGES = ("en", "fr", "de", "ru", "ar", "tr", "zh", "ko")
SECONDS = "XLING_BENCH_S"
LAYERS = 12


def write_files(root: Path) -> None:
    """An encoder with one weight, and one sentence for each treebank."""
    encoder = root / "encoder"
    encoder.mkdir(parents=True)
    config = {"model_type": "bert", "num_hidden_layers": LAYERS, "hidden_size": 8}
    (encoder / "config.json").write_text(json.dumps(config))
    (encoder / "tokenizer.json").write_text("{}")
    save_file({"weight": np.zeros(1, np.float32)}, encoder / "model.safetensors")
    data = root / "data"
    data.mkdir()
    files = [
        ("en_ewt", "train"),
        ("en_ewt", "dev"),
        *((f"{code}_pud", "test") for code in LANGUAGES),
    ]
    for code, split in files:
        line = "1\tword\tword\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
        (data / f"{code}-ud-{split}.conllu").write_text(f"# sent_id = n1\n{line}")


def study_of(
    root: Path,
    seeds: int,
    *,
    ablations: Sequence[str] = ("ref",),
    **changes: Any,  # noqa: ANN401 - study keys
) -> Study:
    """A study of so many seeds on the files that `write_files` wrote."""
    table: dict[str, Any] = {
        "name": "made-up",
        "encoder": {"model": str(root / "encoder")},
        "data": {"root": str(root / "data"), "sources": {"en": "en_ewt"}},
        "grid": {"task": "upos", "source": "en", "ablation": list(ablations)},
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 1},
        "seeds": {"report": list(range(1, seeds + 1))},
        "evaluate": {"targets": list(LANGUAGES), "naming": "{lang}_pud"},
        "similarity": {"measures": ["linear-cka"], "states": ["fine-tuned"]},
        "storage": str(root / "store"),
    }
    return build_study(table | changes, "made-up.toml")


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Sleep, and commit made-up rows; executors find it as `WORKER`."""
    began, started = time.monotonic(), datetime.now(UTC)
    point = CurvePoint(
        step=1, epoch=1, loss=1.0, dev_metric="accuracy", dev_value=0.9, learning_rate=1e-4
    )
    yield point
    time.sleep(max(0.0, float(os.environ.get(SECONDS, "0")) - (time.monotonic() - began)))
    commit_result(job, result(job, point), started, datetime.now(UTC))
    return Outcome(
        job_id=job.job_id,
        trial_id=job.trial_id,
        status="done",
        seconds=time.monotonic() - began,
    )


def result(job: Job, point: CurvePoint) -> TrialResult:
    """Rows of the size that a trial on these targets has."""
    return TrialResult(
        best_epoch=1,
        scores=_scores(job.request),
        similarity=_similarities(job.request),
        curve=(point,),
        facts=Facts(
            device="cpu", threads=1, load_s=0.0, train_s=1.0, evaluate_s=0.0, similarity_s=0.0,
            peak_memory=10**9, train_words_per_s=100.0, resumed_epochs=0, n_train=1,
            n_parameters=1, n_reinitialised=0, n_frozen=0,
        ),
    )  # fmt: skip


def _scores(asked: Request) -> tuple[Score, ...]:
    return tuple(
        Score(
            split=ref.split,
            treebank=ref.code,
            language=ref.language,
            data_key=ref.key,
            metric=metric,
            value=0.5,
            n=20_000,
        )
        for ref in asked.targets
        for metric in ("accuracy", "f1_macro", "f1_micro")
    )


def _similarities(asked: Request) -> tuple[Similarity, ...]:
    if asked.similarity is None:
        return ()
    keys = {ref.language: ref.key for ref in asked.similarity.parallel}
    return tuple(
        Similarity(
            state="fine-tuned",
            source=pivot,
            target=language,
            source_key=keys[pivot],
            target_key=keys[language],
            layer=layer,
            measure=measure,
            value=0.5,
            n=1000,
            null_mean=0.1,
            null_95=0.2,
            options="{}",
        )
        for measure in asked.similarity.measures
        for pivot in asked.similarity.pivots
        for language in keys
        if language != pivot
        for layer in range(LAYERS + 1)
    )
