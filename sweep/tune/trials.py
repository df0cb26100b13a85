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

from sweep.actor import OUTCOME, POINT
from sweep.executor import Watch, failed
from sweep.schedule import Schedule
from sweep.tune.mending import MEMORY_KILL
from trainables.spec import CurvePoint, Job

if TYPE_CHECKING:
    from sweep.worker import Outcome


class Named(tune.Trainable):  # type: ignore[misc] # ray ships no types we could follow
    """What Tune is told that it runs, as it takes nothing else; `sweep.actor.Worker` runs."""


class Quiet(Trial):  # type: ignore[misc] # as above
    """A trial that neither asks its actor for metrics nor keeps any: nobody reads them."""

    def set_ray_actor(self, ray_actor: Any) -> None:  # noqa: ANN401 - ray's handle
        """Remember the actor."""
        self.temporary_state.ray_actor = ray_actor

    def update_last_result(self, result: dict[str, Any]) -> None:
        """Remember the result."""
        self.run_metadata.last_result = result


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
        point: CurvePoint = result[POINT]
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
        if result and OUTCOME in result:
            outcome: Outcome = result[OUTCOME]
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
        trial.run_metadata.last_result = {}
