"""Made-up jobs that go on from their last epoch when they are tried again.

A job `busy…` ends its last epoch only once `<store>/hurry` is there, the job `long` only once
`<store>/release` is; epochs before that are at once.
"""

import os
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from sweep.worker import Outcome
from trainables.spec import (
    CurvePoint,
    EncoderRef,
    HyperParameters,
    Job,
    Request,
    TrialSpec,
    Workspace,
)

BUSY, LONG = "busy", "long"
EPOCHS = 3

SPEC = TrialSpec(
    task="upos",
    encoder=EncoderRef(name="toy", location="toy", fingerprint="sha256:0", n_layers=2),
    source="en",
    train=None,
    dev=None,
    ablation="ref",
    hyper=HyperParameters(learning_rate=1e-4, batch_size=16, epochs=EPOCHS),
    seed=1,
)


def job(store: Path, name: str, gpus: float = 0.0) -> Job:
    """A job of that name, with its share of a GPU."""
    return Job(
        job_id=name,
        trial_id=name,
        study="made-up",
        spec=replace(SPEC),
        request=Request(),
        workspace=Workspace(
            checkpoints=f"{store}/checkpoints/{name}", cache=f"{store}/cache", gpus=gpus
        ),
        store=str(store),
    )


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Run a job; the executor finds it as "cluster_jobs:start"."""
    store = Path(job.store)
    epochs = store / "epochs" / job.job_id
    for folder in (epochs.parent, store / "at-work"):
        folder.mkdir(exist_ok=True)
    done = len(epochs.read_text().split()) if epochs.exists() else 0
    (store / "at-work" / str(os.getpid())).touch()
    if job.job_id == LONG:
        (store / "long-pid").write_text(str(os.getpid()))
    for epoch in range(done + 1, EPOCHS + 1):
        if epoch == EPOCHS:
            gate = store / ("release" if job.job_id == LONG else "hurry")
            while not gate.exists():
                time.sleep(0.1)
        with epochs.open("a") as log:
            log.write(f"{epoch}/{job.attempt}\n")
        yield CurvePoint(
            step=epoch,
            epoch=epoch,
            loss=1 / epoch,
            dev_metric="accuracy",
            dev_value=0.5,
            learning_rate=1e-4,
        )
    return Outcome(job_id=job.job_id, trial_id=job.trial_id, status="done")
