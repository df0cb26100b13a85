"""One sweep on Ray Tune, on this machine or a cluster.

One `Tuner.fit` per sweep. Tune places actors and carries jobs there; it is not asked to remember
anything: trials come from our schedule, rows are committed by the worker, and its own state goes
into a folder that is thrown away (a torn state file makes `Tuner.restore` start anew in silence).
"""

import os
import tempfile
import time
from typing import Any

import ray
from ray import tune

from sweep.actor import Worker
from sweep.executor import WORKER, Interrupt, Watch, environment
from sweep.schedule import Schedule
from sweep.tune.connection import TUNE_ENVIRONMENT, connected
from sweep.tune.mending import (
    actors_are_light,
    ended_trials_are_forgotten,
    idle_actors_leave,
    names_are_remembered,
    silent,
    starting_actors_stay,
    states_are_not_kept,
    survive_memory_kills,
)
from sweep.tune.trials import Ear, Feed, Named


class TuneExecutor:
    """Runs jobs as Tune trials on reused actors.

    Args:
        workers: Most trials at a time. On a Ray of our own, also its size.
        threads: CPU threads of each trial, the same as in the jobs' workspaces.
        cpus: CPU share of a trial; None means `threads`.
        address: Ray cluster to join; None means `RAY_ADDRESS`, or a Ray of our own if unset.
        worker: The function that runs a job, as "module:object".
        grace_s: Seconds said to be left after Ctrl-C; Tune ends its actors after about 15.
        idle_s: Seconds after which an actor that waits for a job is let go, so that it does not
            keep a paid node through a sweep's tail.
        mark: Token of the driver's lock; workers of a cluster that do not find it in the store
            refuse their jobs.
    """

    def __init__(
        self,
        workers: int = 1,
        *,
        threads: int = 1,
        cpus: float | None = None,
        address: str | None = None,
        worker: str = WORKER,
        grace_s: float = 15.0,
        idle_s: float = 30.0,
        mark: str = "",
    ) -> None:
        self.workers = workers
        self.threads = threads
        self.cpus = float(threads) if cpus is None else cpus
        self.address = address or os.environ.get("RAY_ADDRESS")
        self.worker = worker
        self.grace_s = grace_s
        self.idle_s = idle_s
        self.mark = mark

    def run(self, schedule: Schedule, watch: Watch) -> None:
        """Hand out jobs until the schedule is done; see `Executor.run`.

        Raises:
            ClusterError: the cluster cannot be joined.
        """
        if schedule.is_done():
            return
        settings = TUNE_ENVIRONMENT | {
            # Tune's default is 1 for a search of one's own: a cluster would grow one by one.
            "TUNE_MAX_PENDING_TRIALS_PG": str(self.workers),
        }
        with (
            Interrupt(self.grace_s) as stop,
            environment(settings),
            # Removed after Ray has ended, whose workers may still write there.
            tempfile.TemporaryDirectory(prefix="xling-tune-", ignore_cleanup_errors=True) as folder,
            silent("ray.tune"),
            survive_memory_kills(),
            idle_actors_leave(self.idle_s),
            connected(self),
            names_are_remembered(),
            ended_trials_are_forgotten(),
            states_are_not_kept(),
            actors_are_light(Worker),
        ):
            stop.hold()
            feed = Feed(
                schedule,
                watch,
                workers=self.workers,
                cpus=self.cpus,
                config={"worker": self.worker, "mark": self.mark if self.address else None},
            )
            with starting_actors_stay(lambda: feed.has_more):
                self._fit(feed, stop, folder)
            if stop.is_set:
                raise KeyboardInterrupt

    def _fit(self, feed: "Feed", stop: Interrupt, folder: str) -> None:
        tune.Tuner(
            Named,
            tune_config=tune.TuneConfig(
                search_alg=feed,
                reuse_actors=True,  # a fresh actor costs seconds and the warm caches
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=folder,
                verbose=0,
                stop=_StopWhen(stop),
                callbacks=[Ear(feed)],
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                failure_config=tune.FailureConfig(max_failures=0),  # the schedule retries
            ),
        ).fit()


class _StopWhen(tune.Stopper):  # type: ignore[misc] # ray ships no types we could follow
    """Ends the whole experiment once a stop was asked for."""

    def __init__(self, stop: Interrupt) -> None:
        self._stop = stop

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:  # noqa: ARG002 - ray's signature
        return False

    def stop_all(self) -> bool:
        return self._stop.is_set

    def __deepcopy__(self, memo: dict[int, Any]) -> "_StopWhen":
        return self

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Tune pickles what it would restore from; we never do."""
        return object, ()


def try_ray() -> dict[str, Any]:
    """Join the cluster of `RAY_ADDRESS`, or start a Ray as a run would; run one task there.

    Returns:
        Version of Ray, nodes, cores, GPUs, and seconds until the task was done.
    """
    began = time.monotonic()
    with connected(TuneExecutor()):
        ray.get(ray.remote(num_cpus=0)(lambda: os.getpid()).remote())  # noqa: PLW0108 - no builtins
        sizes = ray.cluster_resources()
        return {
            "version": ray.__version__,
            "nodes": sum(bool(node["Alive"]) for node in ray.nodes()),
            "cpus": sizes.get("CPU", 0.0),
            "gpus": sizes.get("GPU", 0.0),
            "seconds": time.monotonic() - began,
        }
