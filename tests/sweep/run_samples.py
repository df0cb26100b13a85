"""A study whose trials are made up but committed for real, in any process that runs one.

Each run of a job appends a line to `<store>/runs` (to the cache, where the store is a bucket). What
happens besides is decided by the seed: 6 waits in its first epoch if the cache holds a file `hold`,
7 fails as a user error, 8 kills its process every time, 9 stops the driver with SIGINT (or with the
signal that `<store>/driver` names after its process).
"""

import os
import signal
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import store_samples as samples

from sweep.commit import commit_failure, commit_result
from sweep.resolve import Resolved
from sweep.storage import StorageError
from sweep.study import Study, build_study
from sweep.worker import Outcome
from trainables.spec import CurvePoint, DataRef, EncoderRef, Job

WORKER = "run_samples:start"


def study_of(store: Path | str, seeds: list[int], /, **changes: object) -> Study:
    """One task, one source, two ablations and as many seeds as are given; a probe."""
    table: dict[str, object] = {
        "name": "made-up",
        "encoder": {"model": "tiny"},
        "data": {"sources": {"en": "en_ewt"}},
        "grid": {"task": "upos", "source": "en", "ablation": ["ref", "reinit:1"]},
        "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2},
        "seeds": {"report": seeds},
        "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
        "similarity": {"measures": ["linear-cka"]},
        "executor": "local",
        "storage": str(store),
        "tracking": {"enabled": False},
    }
    return build_study(table | changes)


def resolve(study: Study) -> Resolved:
    """What `sweep.resolve.resolve` would find if the files were there."""
    return Resolved(
        encoder=EncoderRef(name="tiny", location="/m", fingerprint="sha256:aa", n_layers=2),
        train={("upos", "en"): samples.ref("en_ewt", "train")},
        dev={("upos", "en"): samples.ref("en_ewt", "dev")},
        targets={"upos": tuple(samples.ref(f"{code}_pud") for code in study.evaluate.targets)},
        parallel=(_pud("en"), _pud("fr")),
    )


def runs(folder: Path) -> list[str]:
    """Job ids in the order in which they were run."""
    log = Path(folder, "runs")
    return log.read_text().split() if log.exists() else []


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Run a made-up job; `run_study` finds it as "run_samples:start"."""
    folder = Path(job.workspace.cache if "://" in job.store else job.store)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "runs").open("a") as log:
        log.write(f"{job.job_id}\n")
    began = datetime.now(UTC)
    state = "pretrained" if job.spec.train is None else "fine-tuned"
    result = samples.result(job.request, state=state)
    if job.spec.seed == 7:
        commit_failure(job, "user", "no such thing", started=began, finished=began)
        return _outcome(job, "failed", "user", "no such thing")
    if job.spec.seed == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    for point in result.curve if job.spec.hyper.epochs else ():
        yield point
        hold = Path(job.workspace.cache, "hold")
        if job.spec.seed == 6 and hold.exists():
            hold.with_name("held").open("wb").close()
            threading.Event().wait()
        if job.spec.seed == 9:
            driver = Path(job.store, "driver")
            if driver.exists():
                process, *name = driver.read_text().split()
                os.kill(int(process), signal.Signals[name[0]] if name else signal.SIGINT)
    try:
        commit_result(job, result, began, datetime.now(UTC))
    except StorageError as error:
        return _outcome(job, "failed", "storage", str(error))
    return _outcome(job, "done")


def _outcome(job: Job, status: str, kind: str | None = None, message: str = "") -> Outcome:
    return Outcome(
        job_id=job.job_id,
        trial_id=job.trial_id,
        status=status,
        failure_kind=kind,
        message=message,
    )


def _pud(language: str) -> DataRef:
    return samples.ref(f"{language}_pud")
