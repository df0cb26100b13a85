"""Jobs that do what their study name says, for any process that an executor starts.

Each run of a job appends one line to `<store>/log`: what happened, to which job, in which attempt,
in which process. Lines this short are appended whole, whoever writes them.
"""

import os
import signal
import socket
import sys
import threading
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

SPEC = TrialSpec(
    task="upos",
    encoder=EncoderRef(name="toy", location="toy", fingerprint="sha256:0", n_layers=2),
    source="en",
    train=None,
    dev=None,
    ablation="ref",
    hyper=HyperParameters(learning_rate=1e-4, batch_size=16, epochs=2),
    seed=1,
)


def job(
    store: str | Path, name: str, does: str = "succeed", *, epochs: int = 2, gpus: float = 0.0
) -> Job:
    """A job that takes `epochs` epochs and then does what it is told."""
    return Job(
        job_id=name,
        trial_id=name,
        study=does,
        spec=replace(SPEC, hyper=replace(SPEC.hyper, epochs=epochs)),
        request=Request(),
        workspace=Workspace(
            checkpoints=f"{store}/checkpoints/{name}", cache=f"{store}/cache", gpus=gpus
        ),
        store=str(store),
    )


def point(epoch: int) -> CurvePoint:
    """The end of an epoch."""
    return CurvePoint(
        step=10 * epoch,
        epoch=epoch,
        loss=1 / epoch,
        dev_metric="accuracy",
        dev_value=1 - 1 / (epoch + 1),
        learning_rate=1e-4,
    )


def lines(store: str | Path, what: str) -> list[list[str]]:
    """The log's lines about one kind of event, as [job, attempt, process]."""
    log = Path(store, "log")
    rows = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [row[1:] for row in rows if row[0] == what]


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Run a job of this file; the executors find it as "executor_fakes:start"."""
    _log(job, "start")
    _before(job)
    for epoch in range(1, job.spec.hyper.epochs + 1):
        go_on = yield point(epoch)
        _log(job, f"epoch{epoch}")
        if job.study == "interrupt-me" and epoch == 1:
            os.kill(int(Path(job.store, "driver").read_text()), signal.SIGINT)
        if not go_on:
            _log(job, "pruned")
            return _outcome(job, "pruned")
    if job.study == "user-error":
        return _outcome(job, "failed", "user")
    if job.study == "memory" and job.workspace.micro_batch != 4:
        return _outcome(job, "failed", "out-of-memory")
    _log(job, "commit")
    Path(job.store, f"{job.job_id}.done").touch()
    return _outcome(job, "done")


def _before(job: Job) -> None:
    """What happens to the process before the first epoch."""
    match job.study:
        case "raise":
            raise RuntimeError("boom")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill-once" if job.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "environment":
            _log(job, "threads=" + os.environ.get("OMP_NUM_THREADS", ""))
            large = ("mlflow", "optuna", "pandas", "ray.data", "ray.tune")
            _log(job, "loaded=" + ",".join(name for name in large if name in sys.modules))
        case "meet":  # and what Ray says of GPUs
            _log(job, "gpu=" + os.environ.get("CUDA_VISIBLE_DEVICES", ""))
            port = int(Path(job.store, "port").read_text())
            with socket.create_connection(("127.0.0.1", port), timeout=120) as line:
                line.recv(1)
        case "nap":
            time.sleep(0.2)
        case "hang":
            with Path(job.store, "pipe").open("w") as pipe:
                pipe.write(f"{os.getpid()}\n")
            threading.Event().wait()


def _outcome(job: Job, status: str, kind: str | None = None) -> Outcome:
    return Outcome(
        job_id=job.job_id,
        trial_id=job.trial_id,
        status=status,
        failure_kind=kind,
        message="",
        seconds=0.0,
    )


def _log(job: Job, what: str) -> None:
    with Path(job.store, "log").open("a") as log:
        log.write(f"{what} {job.job_id} {job.attempt} {os.getpid()}\n")
