"""Predicted and measured time of small sweeps: sleeping jobs, and a real study given by file.

Run as `python -m bench.rehearsal [--jobs 32 --workers 4]` for jobs that sleep as long as they are
told in the real local executor, beside the rehearsal of the same schedule; with `--store FOLDER
--study FILE --workers N` for a study that has run: the first twentieth of its rows (at least two)
forecasts the seconds of the others, and the rehearsal the time of the whole. Where rows say how
fast their machine was, the others are told as well at the pace of the first: what is left then is
the forecast's own error, and not the machine's. Prints JSON.
"""

import argparse
import itertools
import json
import os
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bench.machine import machine
from sweep.clusterfile import Cluster, NodeType
from sweep.local import LocalExecutor
from sweep.opened import open_study
from sweep.pricing.devices import CPU, device
from sweep.pricing.paces import paces_of
from sweep.pricing.speeds import Speeds
from sweep.schedule import FixedSchedule
from sweep.simulate.executor import Delays, SimulatedExecutor
from sweep.simulate.rehearsal import Silent
from sweep.study import load_study
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

_PAUSE_S = 60.0  # longer times in which nothing ran lie between two runs
_SPEC = TrialSpec(
    task="upos",
    encoder=EncoderRef(name="none", location="", fingerprint="none", n_layers=1),
    source="en",
    train=None,
    dev=None,
    ablation="ref",
    hyper=HyperParameters(learning_rate=1e-4, batch_size=1, epochs=1),
    seed=1,
)


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Sleep as many milliseconds as the job's seed says."""
    time.sleep(job.spec.seed / 1000)
    return Outcome(job_id=job.job_id, trial_id=job.trial_id, status="done")
    yield  # makes it a generator, as executors want one


def this_machine(workers: int) -> Cluster:
    """One node with a core for each worker, there from the beginning."""
    node = NodeType(name="here", cpus=workers, max_workers=1, usd_per_hour=0.0)
    return Cluster(name="this machine", head=node, workers=(), max_workers=0)


def sleeping(n: int, workers: int) -> dict[str, Any]:
    """Jobs of 1 to 6 s through the local executor, and rehearsed."""
    random = np.random.default_rng(0)
    jobs = [
        Job(
            job_id=f"job{i}",
            trial_id=f"job{i}",
            study="sleep",
            spec=replace(_SPEC, seed=int(random.integers(1000, 6000))),
            request=Request(),
            workspace=Workspace(checkpoints="", cache=""),
            store="",
        )
        for i in range(n)
    ]
    began = time.monotonic()
    first_s: list[float] = []

    class Watch(Silent):
        """Notes when the first job has ended: the start of the processes is not the schedule's."""

        def finished(self, job: Job, outcome: Outcome, *, retried: bool) -> None:
            """The first one counts."""
            if not first_s and not retried:
                first_s.append(time.monotonic() - began - job.spec.seed / 1000 + outcome.seconds)

    with tempfile.TemporaryDirectory() as logs:
        executor = LocalExecutor(workers, worker="bench.rehearsal:start", logs=logs)
        executor.run(FixedSchedule(jobs), Watch())
    measured = time.monotonic() - began
    account = SimulatedExecutor(
        this_machine(workers),
        lambda job, _node: job.spec.seed / 1000,
        delays=Delays(cold_s=first_s[0], warm_s=0.0, driver_s=0.0),
    ).run(FixedSchedule(jobs), Silent())
    return _compared(account.makespan_s, measured) | {
        "jobs": n,
        "workers": workers,
        "start_of_a_process_s": round(first_s[0], 2),
    }


def real(study: str, store: str, workers: int, changes: Sequence[str]) -> dict[str, Any]:
    """A study that has run: its rest forecast from its beginning, on what it ran on."""
    opened = open_study(load_study(study, changes), store)
    rows = opened.ledger.table("trials").sort_by("started")
    kept = rows.filter(pa.compute.equal(rows.column("status"), "done"))
    done = [row for row in kept.to_pylist() if row["kind"] == "train" and not row["resumed_epochs"]]
    trials = {trial.trial_id: trial for trial in opened.trials}
    done = [row for row in done if row["trial_id"] in trials]
    n = max(2, len(done) // 20)
    asked = {name: trial.request for name, trial in trials.items()}
    first = rows.filter(
        pa.compute.less_equal(rows.column("finished"), max(row["finished"] for row in done[:n]))
    )
    where = device(done[0]["device"])
    share = float((done[0]["gpu_share"] if where.name != CPU else done[0]["threads"]) or 1)
    rest = [trials[row["trial_id"]] for row in done[n:]]
    speeds = Speeds(first, asked)
    told = speeds.forecast(
        ((t.spec, t.request, t.spec.train is not None) for t in rest), where, share
    )
    parts = ("load_s", "train_s", "evaluate_s", "similarity_s")
    seconds = {row["trial_id"]: sum(row[part] for part in parts) for row in done}
    measured = sum(seconds[trial.trial_id] for trial in rest)
    paces, _ = paces_of(rows)
    at = {row["trial_id"]: paces.get(row["commit_id"], 1.0) for row in done}
    of_first = float(np.exp(np.mean([np.log(at[row["trial_id"]]) for row in done[:n]])))
    steady = sum(seconds[trial.trial_id] * of_first / at[trial.trial_id] for trial in rest)
    unknown = Speeds(rows.slice(0, 0), asked).forecast(
        ((t.spec, t.request, t.spec.train is not None) for t in rest), where, share
    )
    return {
        "trials": len(done),
        "forecast_from": n,
        "cost_of_the_rest": _compared(told.total.mean, measured)
        | {"low_s": round(told.total.low, 1), "high_s": round(told.total.high, 1)},
        "at_the_pace_of_the_first": _compared(told.total.mean, steady)
        | {"slowest": round(max(at.values()) / of_first, 2)},
        "before_any": _compared(unknown.total.mean, measured)
        | {"low_s": round(unknown.total.low, 1), "high_s": round(unknown.total.high, 1)},
        "makespan": _makespan(opened.study.name, done, trials, seconds, workers),
    }


def _makespan(
    study: str,
    done: list[dict[str, Any]],
    trials: dict[str, Any],
    seconds: dict[str, float],
    workers: int,
) -> dict[str, float]:
    """The whole study with the seconds that its trials took: are slots filled alike?"""
    jobs = [
        Job(
            job_id=row["trial_id"],
            trial_id=row["trial_id"],
            study=study,
            spec=trials[row["trial_id"]].spec,
            request=Request(),
            workspace=Workspace(checkpoints="", cache=""),
            store="",
        )
        for row in done
    ]
    account = SimulatedExecutor(this_machine(workers), lambda job, _node: seconds[job.job_id]).run(
        FixedSchedule(jobs), Silent()
    )
    spans = [(row["started"].timestamp(), row["finished"].timestamp()) for row in done]
    reached = itertools.accumulate((end for _, end in spans), max)
    gaps = (begin - end for end, (begin, _) in zip(reached, spans[1:], strict=False))
    pauses = sum(gap for gap in gaps if gap > _PAUSE_S)
    measured = max(end for _, end in spans) - spans[0][0] - pauses
    return _compared(account.makespan_s, measured)


def _compared(predicted: float, measured: float) -> dict[str, float]:
    return {
        "predicted_s": round(predicted, 1),
        "measured_s": round(measured, 1),
        "ratio": round(predicted / measured, 3),
    }


def main() -> None:
    """Either part; JSON on standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=32)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--study")
    parser.add_argument("--store")
    parser.add_argument("--set", action="append", default=[], help="as for `sweep run`")
    options = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if options.study:
        found = real(options.study, options.store, options.workers, options.set)
    else:
        found = sleeping(options.jobs, options.workers)
    print(json.dumps(found | machine("numpy", "pyarrow"), indent=1))  # noqa: T201 - its output


if __name__ == "__main__":
    main()
