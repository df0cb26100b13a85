"""A study that searches, over a made-up landscape, run without an executor or for real.

The score on source dev after an epoch is a known function of the hyper-parameters: best at a
learning rate of 1e-3 and a batch of 16, better with every epoch. Cells differ by a shift.
"""

import math
import os
import signal
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import run_samples as made
import store_samples as samples

from sweep.commit import commit_failure, commit_result
from sweep.grid import PlannedTrial
from sweep.resolve import Resolved
from sweep.search.layout import Layout, lay_out
from sweep.search.log import Log, MemoryLog
from sweep.search.results import RehearsedResults, Told
from sweep.search.schedule import SearchSchedule
from sweep.study import Study
from sweep.worker import Outcome
from trainables.spec import CurvePoint, HyperParameters, Job, Request, Score, TrialSpec, Workspace

WORKER = "search_samples:start"
GRID = {"method": "grid", "learning_rate": [1e-4, 1e-3, 1e-2], "batch_size": [8, 16]}
TPE = {
    "method": "tpe",
    "trials": 8,
    "learning_rate": {"low": 1e-5, "high": 1e-1, "log": True},
    "batch_size": [8, 16, 32],
}


def study_of(store: Path | str, search: dict[str, object], /, **changes: object) -> Study:
    """Two ablations of one task and source, three seeds, three epochs."""
    return made.study_of(
        store,
        [1, 2, 3],
        search=search,
        hyper={"learning_rate": 1e-4, "batch_size": 8, "epochs": 3},
        **{"similarity": None, "grid": {"task": "upos", "source": "en", "ablation": ABLATIONS}}
        | changes,
    )


ABLATIONS = ["ref", "reinit:1"]


def resolve(study: Study) -> Resolved:
    """As `run_samples.resolve`, with what an oracle is tested on."""
    found = made.resolve(study)
    return replace(found, oracle={"upos": (samples.ref("fr_pud", "dev"),)})


def landscape(hyper: HyperParameters, epoch: int, seed: int = 0, ablation: str = "ref") -> float:
    """Score on source dev after an epoch."""
    off = (math.log10(hyper.learning_rate) + 3) ** 2 / 20 + abs(hyper.batch_size - 16) / 200
    shift = 0.0 if ablation == "ref" else -0.05
    return 0.9 - off - 0.3 * 0.5**epoch + shift + 0.001 * (seed % 3)


def curve(spec: TrialSpec) -> dict[int, float]:
    """Epoch -> score on source dev."""
    return {
        epoch: landscape(spec.hyper, epoch, spec.seed, spec.ablation)
        for epoch in range(1, spec.hyper.epochs + 1)
    }


def point(epoch: int, value: float) -> CurvePoint:
    """The end of an epoch."""
    return CurvePoint(
        step=epoch,
        epoch=epoch,
        loss=1.0,
        dev_metric="upos",
        dev_value=value,
        learning_rate=1e-4,
    )


class Rehearsal:
    """A schedule without an executor: the caller says which job goes on, and how it ends."""

    def __init__(
        self, study: Study, log: Log | None = None, results: RehearsedResults | None = None
    ) -> None:
        self.results = results or RehearsedResults()
        self.log = log or MemoryLog()
        self.layout: Layout = lay_out(study, resolve(study), log=self.log, results=self.results)
        self.schedule = SearchSchedule(self.layout, self.results, self.job)
        self.events: list[tuple[str, str, str]] = []
        """("start" | "end", phase, cell's ablation), in order."""

    def job(self, trial: PlannedTrial) -> Job | None:
        """A job unless its end is known."""
        told = self.results.of(trial.trial_id)
        if told is not None and told.state == "done" and trial.phase != "search":
            return None
        return job_of(trial)

    def take(self) -> Job | None:
        """The next job."""
        job = self.schedule.next()
        if job is not None:
            self.events.append(("start", job.phase, job.spec.ablation))
        return job

    def finish(self, job: Job, kind: str | None = None) -> Outcome:
        """Let a job run to its end, epoch by epoch."""
        told: dict[int, float] = {}
        state = "failed" if kind else "done"
        for epoch, value in curve(job.spec).items() if kind is None else ():
            told[epoch] = value
            if not self.schedule.report(job, point(epoch, value)) and epoch < job.spec.hyper.epochs:
                state = "pruned"
                break
        if kind is None:
            self.results.say(job.trial_id, Told(state, told, "upos"), scores(job.spec, job.request))
        outcome = Outcome(job_id=job.job_id, trial_id=job.trial_id, status=state, failure_kind=kind)
        self.events.append(("end", job.phase, job.spec.ablation))
        self.schedule.finished(job, outcome)
        return outcome

    def run(self, slots: int = 1, pick: Callable[[list[Job]], int] = lambda _: 0) -> list[Job]:
        """Run to the end with so many slots; `pick` says which running job ends next."""
        running: list[Job] = []
        every: list[Job] = []
        while not self.schedule.is_done():
            while len(running) < slots and (job := self.take()) is not None:
                running.append(job)
                every.append(job)
            assert running, "the schedule waits for nothing"
            self.finish(running.pop(pick(running)))
        return every


def job_of(trial: PlannedTrial, store: str = "store") -> Job:
    """The whole job of a trial."""
    return Job(
        job_id=trial.trial_id,
        trial_id=trial.trial_id,
        study="made-up",
        spec=trial.spec,
        request=trial.request,
        workspace=Workspace(checkpoints="c", cache="c"),
        store=store,
        phase=trial.phase,
    )


def scores(spec: TrialSpec, request: Request) -> dict[tuple[str, str], float]:
    """Test scores: what source dev says, less what the language costs."""
    best = max(curve(spec).values(), default=0.0)
    return {(ref.key, "upos"): best - 0.1 * (ref.language != "en") for ref in request.targets}


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Run a job over the landscape and commit it; kills the driver where a file says so."""
    folder = Path(job.workspace.cache if "://" in job.store else job.store)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "runs").open("a") as log:
        log.write(f"{job.job_id}\n")
    began = datetime.now(UTC)
    kill = folder / "kill-at"
    if kill.exists() and len(made.runs(folder)) == int(kill.read_text()):
        kill.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if job.spec.hyper.learning_rate > 0.05:  # too high: diverges, every time
        commit_failure(job, "user", "diverged", started=began, finished=began)
        return _outcome(job, "failed", "user")
    points: list[CurvePoint] = []
    pruned_at = None
    for epoch, value in curve(job.spec).items():
        points.append(point(epoch, value))
        if not (yield points[-1]) and epoch < job.spec.hyper.epochs:
            pruned_at = epoch
            break
    result = samples.result(Request())
    measured = scores(job.spec, job.request)
    rows = (
        ()
        if pruned_at
        else tuple(
            Score(
                split=ref.split,
                treebank=ref.code,
                language=ref.language,
                data_key=ref.key,
                metric="upos",
                value=measured[ref.key, "upos"],
                n=10,
            )
            for ref in job.request.targets
        )
    )
    result = replace(result, scores=rows, curve=tuple(points), pruned_at=pruned_at)
    commit_result(job, result, began, datetime.now(UTC))
    return _outcome(job, "done" if pruned_at is None else "pruned")


def _outcome(job: Job, status: str, kind: str | None = None) -> Outcome:
    return Outcome(job_id=job.job_id, trial_id=job.trial_id, status=status, failure_kind=kind)
