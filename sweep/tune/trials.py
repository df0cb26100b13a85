"""The schedule's jobs as Tune's trials, and what becomes of them as the schedule's news."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune
from ray.exceptions import RayActorError
from ray.tune import PlacementGroupFactory
from ray.tune.experiment import Trial
from ray.tune.search.search_algorithm import SearchAlgorithm

from sweep.executor import Attempt, Watch, failed, load_start
from sweep.nodes import blindness
from sweep.schedule import Schedule
from sweep.tune.mending import MEMORY_KILL
from trainables.spec import CurvePoint, Job

if TYPE_CHECKING:
    from sweep.worker import Outcome

_POINT = "point"
_OUTCOME = "outcome"


class Worker(tune.Trainable):  # type: ignore[misc] # ray ships no types we could follow
    """A warm actor: one job after the other, one `step` per epoch.

    Tune also sets up actors for trials that another actor then takes, so that setting up must
    do nothing but remember.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Take the first job."""
        self._take(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take another job: the actor stays warm."""
        self.cleanup()
        self._take(new_config)
        return True

    def _take(self, config: Mapping[str, Any]) -> None:
        self._job: Job = ray.cloudpickle.loads(config["job"])
        self._worker: str = config["worker"]
        self._mark: str | None = config["mark"]
        self._attempt: Attempt | None = None
        self._go_on = True

    def prune(self) -> None:
        """Called by the driver before the next `step`: let the trial end as pruned."""
        self._go_on = False

    def step(self) -> dict[str, Any]:
        """Run to the end of an epoch, or to the end of the job."""
        if self._attempt is None:
            lacks = "" if self._mark is None else blindness(self._job, self._mark)
            if lacks:
                outcome = failed(self._job, "storage", lacks, time.monotonic())
                return {_OUTCOME: outcome, tune.result.DONE: True}
            self._attempt = Attempt(load_start(self._worker), self._job)
        answer = self._attempt.step(go_on=self._go_on)
        if isinstance(answer, CurvePoint):
            return {_POINT: answer}
        return {_OUTCOME: answer, tune.result.DONE: True}

    def cleanup(self) -> None:
        """Let go of a job that was not run to its end."""
        if self._attempt is not None:
            self._attempt.close()

    def get_auto_filled_metrics(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - ray's signature
        """What Tune adds to each result, less the configuration and what the driver would keep."""
        filled = super().get_auto_filled_metrics(*args, **kwargs)
        return {name: filled[name] for name in ("trial_id", "pid", "node_ip") if name in filled}


class Quiet(Trial):  # type: ignore[misc] # as above
    """A trial that does not ask its actor for metrics that nobody reads: a call for each trial."""

    def set_ray_actor(self, ray_actor: Any) -> None:  # noqa: ANN401 - ray's handle
        """Remember the actor."""
        self.temporary_state.ray_actor = ray_actor


class Feed(SearchAlgorithm):  # type: ignore[misc] # ray ships no types we could follow
    """Gives Tune the schedule's jobs as trials, and the schedule what became of them.

    Args:
        schedule: What to run, and what to do after each end.
        watch: Is told of it all.
        workers: Most trials at a time.
        cpus: CPU share of a trial.
        config: What every worker is told beside its job.
    """

    def __init__(
        self,
        schedule: Schedule,
        watch: Watch,
        *,
        workers: int,
        cpus: float,
        config: Mapping[str, Any],
    ) -> None:
        self._schedule = schedule
        self._watch = watch
        self._workers = workers
        self._cpus = cpus
        self._config = config
        self._live: dict[str, _Live] = {}
        self.has_more = True
        """Whether the schedule had a job when it was asked last."""
        self._spec: dict[str, Any] = {}
        # The same object for the same shares: Tune compares them again and again, by signature.
        self._resources = cache(_resources)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Feed":
        """Tune copies its configuration; there is one schedule all the same."""
        return self

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Tune pickles what it would restore from; we never do."""
        return object, ()

    @property
    def total_samples(self) -> int:
        """Trials of the whole sweep."""
        return self._schedule.total

    def add_configurations(self, experiments: Any) -> None:  # noqa: ANN401 - ray's signature
        """Remember where trials are stored."""
        self._spec = experiments[0].spec

    def is_finished(self) -> bool:
        """Whether no trial will follow."""
        return self._finished or self._schedule.is_done()

    def next_trial(self) -> Trial | None:
        """The next job as a trial; None while there is none, or no room for one."""
        # None waits inside Tune: the next job takes over the actor that has just become free.
        if self._finished or len(self._live) >= self._workers:
            return None
        job = self._schedule.next()
        self.has_more = job is not None
        if job is None:
            if not self._live and not self._schedule.is_done():
                raise RuntimeError("the schedule hands out no job although none is running")
            return None
        name = job.job_id.replace("+", "-")
        trial_id = name if job.attempt == 1 else f"{name}-{job.attempt}"
        if job.workspace.rehearse:
            trial_id += "-rehearsal"
        trial = Quiet(
            self._spec["run"],
            trial_id=trial_id,
            storage=self._spec["storage"],
            config={
                "job": ray.cloudpickle.dumps(job),
                "cpus": self._cpus,
                "gpus": job.workspace.gpus,
                **self._config,
            },
            placement_group_factory=self._resources(self._cpus, job.workspace.gpus),
            checkpoint_config=self._spec["checkpoint_config"],
            trial_dirname_creator=self._spec["trial_dirname_creator"],
        )
        self._live[trial_id] = _Live(job, trial)
        return trial

    def started(self, trial: Trial) -> None:
        """Tune has an actor for the trial."""
        live = self._live[trial.trial_id]
        live.began = time.monotonic()
        self._watch.started(live.job)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """An epoch has ended: tell the watch, and ask the schedule whether to go on."""
        live = self._live[trial_id]
        point: CurvePoint = result[_POINT]
        self._watch.epoch(live.job, point)
        if not self._schedule.report(live.job, point):
            # An actor takes calls in the order they were made, and Tune asks for the next step
            # after this: the trial ends itself, and commits that it was pruned.
            live.trial.temporary_state.ray_actor.prune.remote()

    def on_trial_complete(
        self,
        trial_id: str,
        result: dict[str, Any] | None = None,
        error: bool = False,
    ) -> None:
        """Tell schedule and watch what became of a job."""
        live = self._live.pop(trial_id, None)
        if live is None:
            return
        job = live.job
        if result and _OUTCOME in result:
            outcome: Outcome = result[_OUTCOME]
        elif error:
            outcome = failed(job, *_cause(live.trial), live.began)
        else:
            return  # stopped on our wish; its checkpoint waits for the next run
        self._watch.finished(job, outcome, retried=self._schedule.finished(job, outcome))


@dataclass(slots=True)
class _Live:
    """A job inside Tune."""

    job: Job
    trial: Trial
    began: float = field(default_factory=time.monotonic)


def _resources(cpus: float, gpus: float) -> PlacementGroupFactory:
    return PlacementGroupFactory([{"CPU": cpus, "GPU": gpus}])


def _cause(trial: Trial) -> tuple[str, str]:
    """Failure kind and message of a trial whose actor could not say what happened."""
    # `trial.get_pickled_error` looks where Tune has yet to copy this file.
    file = trial.pickled_error_file
    if file is None or not Path(file).exists():
        return "unknown", f"Ray Tune ended trial {trial.trial_id} and gave no reason"
    error = ray.cloudpickle.loads(Path(file).read_bytes())
    text = f"{type(error).__name__}: {error}"
    if getattr(error, MEMORY_KILL, False):
        return "out-of-memory", text
    if isinstance(error, RayActorError) and not error.actor_init_failed:
        return "preempted", text
    return "unknown", text


class Ear(tune.Callback):  # type: ignore[misc] # ray ships no types we could follow
    """Hears from Tune when a trial gets its actor, and when Tune has done with it."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def on_trial_start(
        self,
        iteration: int,  # noqa: ARG002 - ray's signature
        trials: list[Trial],  # noqa: ARG002 - ray's signature
        trial: Trial,
        **info: Any,  # noqa: ANN401, ARG002 - ray's signature
    ) -> None:
        """Tune has an actor for the trial."""
        self._feed.started(trial)

    def on_trial_complete(
        self,
        iteration: int,  # noqa: ARG002 - ray's signature
        trials: list[Trial],  # noqa: ARG002 - ray's signature
        trial: Trial,
        **info: Any,  # noqa: ANN401, ARG002 - ray's signature
    ) -> None:
        """Let go of what Tune would keep of every trial to the end: 12 kB of 32 and the job."""
        trial.config.clear()
        trial.run_metadata.metric_analysis.clear()
        trial.run_metadata.metric_n_steps.clear()
        trial.run_metadata.last_result = {}
