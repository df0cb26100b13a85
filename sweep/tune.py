"""Run trials on Ray Tune, on this machine or a cluster; the only file that imports ray.

One `Tuner.fit` per sweep. Tune places actors and carries jobs there; it is not asked to remember
anything: trials come from our schedule, rows are committed by the worker, and its own state goes
into a folder that is thrown away (a torn state file makes `Tuner.restore` start anew in silence).
"""

import importlib.util
import logging
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune
from ray._private import ray_constants
from ray._private import worker as ray_worker
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import (
    AuthenticationError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
)
from ray.tune import PlacementGroupFactory
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.search.search_algorithm import SearchAlgorithm

from sweep.commit import CODE_VARIABLE, code_version
from sweep.executor import (
    WORKER,
    Attempt,
    ClusterError,
    Interrupt,
    Watch,
    environment,
    failed,
    load_start,
    thread_limits,
)
from sweep.nodes import blindness
from sweep.schedule import Schedule
from trainables.spec import CurvePoint, Job

if TYPE_CHECKING:
    from sweep.worker import Outcome

_log = logging.getLogger(__name__)

_POINT = "point"
_OUTCOME = "outcome"
_MEMORY_KILL = "is_memory_kill"

_TUNE_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",  # with verbose=0: Tune prints nothing
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # paths mean the same in the worker as here
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_agent_register_timeout_ms": "120000",  # a busy machine's agents start late; 20 s end all
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a trial without GPU share keeps the variables
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # half the driver's time per trial
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # ours also hears SIGTERM
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # else a result without metric ends the sweep
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # no snapshots of a state that nobody reads
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # the watch tells of failures
}


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
        settings = _TUNE_ENVIRONMENT | {
            # Tune's default is 1 for a search of one's own: a cluster would grow one by one.
            "TUNE_MAX_PENDING_TRIALS_PG": str(self.workers),
        }
        with (
            Interrupt(self.grace_s) as stop,
            environment(settings),
            _silent("ray.tune"),
            _survive_memory_kills(),
            _idle_actors_leave(self.idle_s),
            connected(self),
            tempfile.TemporaryDirectory(prefix="xling-tune-") as folder,
        ):
            self._fit(_Feed(schedule, watch, self), stop, folder)
            if stop.is_set:
                raise KeyboardInterrupt

    def _fit(self, feed: "_Feed", stop: Interrupt, folder: str) -> None:
        tune.Tuner(
            _Worker,
            tune_config=tune.TuneConfig(
                search_alg=feed,
                reuse_actors=True,  # a fresh actor costs 4 s and the warm caches
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=folder,
                verbose=0,
                stop=_StopWhen(stop),
                callbacks=[_Ear(feed)],
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                failure_config=tune.FailureConfig(max_failures=0),  # the schedule retries
            ),
        ).fit()


@contextmanager
def connected(executor: TuneExecutor) -> Iterator[None]:
    """Join or start a Ray for this executor, unless this process already has one.

    A Ray of our own listens on loopback only and ends with the block. A cluster that is joined is
    given this code, so that no worker runs another version.

    Raises:
        ClusterError: the cluster cannot be joined.
    """
    if ray.is_initialized():
        yield
        return
    limits = thread_limits(executor.threads) | {"RAY_CHDIR_TO_TRIAL_DIR": "0"}
    common: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": {"env_vars": limits},
    }
    with ExitStack() as patches:
        # The raylet's remarks go to our standard output otherwise; outcomes say as much.
        patches.enter_context(_replaced(ray_worker, "print_to_stdstream", lambda *_, **__: None))
        if executor.address:
            common["runtime_env"] |= {"py_modules": _our_code()}
            limits[CODE_VARIABLE] = code_version()
            _join(executor.address, common)
        else:
            # Loopback only, which Ray does by itself on other systems than Linux.
            patches.enter_context(_replaced(ray_constants, "ENABLE_RAY_CLUSTER", False))  # noqa: FBT003 - a value
            _start(
                num_cpus=math.ceil(executor.workers * executor.cpus),
                include_dashboard=False,
                object_store_memory=100 * 2**20,  # it carries jobs and outcomes only
                **common,
            )
        session = Path(ray_worker.global_worker.node.get_session_dir_path())
        try:
            yield
        finally:
            ray.shutdown()
            if not executor.address:  # Tune's folder for each trial; the logs stay
                shutil.rmtree(session / "artifacts", ignore_errors=True)


def _our_code() -> list[str]:
    """Folders of our packages, which Ray carries to each node once."""
    found = (importlib.util.find_spec(name) for name in ("sweep", "trainables", "analysis"))
    return [str(Path(spec.origin).parent) for spec in found if spec and spec.origin]


def _start(**settings: Any) -> None:  # noqa: ANN401 - ray's own
    """Start a Ray of our own; on a busy machine it may give up on itself once."""
    try:
        ray.init(**settings)
    except Exception as first:  # noqa: BLE001 - Ray raises a bare Exception for this
        _log.warning("Ray did not start (%s); trying once more", first)
        ray.shutdown()
        try:
            ray.init(**settings)
        except Exception as error:
            ray.shutdown()
            reason = " ".join(str(error).split())[:300]
            raise ClusterError(
                f"Ray does not start on this machine: {reason} It may be too busy: try again. "
                "--executor local needs no Ray; `sweep doctor` looks closer."
            ) from error


def _join(address: str, settings: Mapping[str, Any]) -> None:
    try:
        ray.init(address=address, **settings)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise ClusterError(_why_not_joined(address, error)) from error


def _why_not_joined(address: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    where = f"RAY_ADDRESS = {address}"
    if "ersion mismatch" in text:
        return f"{where}: {text} Make both environments by the same constraints.txt."
    if isinstance(error, AuthenticationError) or "oken" in text:
        return (
            f"{where}: the cluster asks for its token ({text[:200]}). Set RAY_AUTH_MODE=token, and "
            "put the token into ~/.ray/auth_token."
        )
    return (
        f"{where}: no Ray cluster answers there ({text[:200]}). Start one (ray up cluster.yaml), "
        "or unset RAY_ADDRESS to run on this machine."
    )


class _Worker(tune.Trainable):  # type: ignore[misc] # ray ships no types we could follow
    """A warm actor: one job after the other, one `step` per epoch.

    Tune also sets up actors for trials that another actor then takes, so that setting up must
    do nothing but remember.
    """

    def setup(self, config: dict[str, Any]) -> None:
        self._take(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
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
        if self._attempt is not None:
            self._attempt.close()

    def get_auto_filled_metrics(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - ray's signature
        """What Tune adds to each result, less the configuration and what the driver would keep."""
        filled = super().get_auto_filled_metrics(*args, **kwargs)
        return {name: filled[name] for name in ("trial_id", "pid", "node_ip") if name in filled}


class _Feed(SearchAlgorithm):  # type: ignore[misc] # ray ships no types we could follow
    """Gives Tune the schedule's jobs as trials, and the schedule what became of them."""

    def __init__(self, schedule: Schedule, watch: Watch, executor: TuneExecutor) -> None:
        self._schedule = schedule
        self._watch = watch
        self._executor = executor
        self._live: dict[str, _Live] = {}
        self._spec: dict[str, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Feed":
        """Tune copies its configuration; there is one schedule all the same."""
        return self

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Tune pickles what it would restore from; we never do."""
        return object, ()

    @property
    def total_samples(self) -> int:
        return self._schedule.total

    def add_configurations(self, experiments: Any) -> None:  # noqa: ANN401 - ray's signature
        self._spec = experiments[0].spec

    def is_finished(self) -> bool:
        return self._finished or self._schedule.is_done()

    def next_trial(self) -> Trial | None:
        # None waits inside Tune: the next job takes over the actor that has just become free.
        if self._finished or len(self._live) >= self._executor.workers:
            return None
        job = self._schedule.next()
        if job is None:
            if not self._live and not self._schedule.is_done():
                raise RuntimeError("the schedule hands out no job although none is running")
            return None
        name = job.job_id.replace("+", "-")
        trial_id = name if job.attempt == 1 else f"{name}-{job.attempt}"
        if job.workspace.rehearse:
            trial_id += "-rehearsal"
        trial = Trial(
            self._spec["run"],
            trial_id=trial_id,
            storage=self._spec["storage"],
            config={
                "job": ray.cloudpickle.dumps(job),
                "worker": self._executor.worker,
                "mark": self._executor.mark if self._executor.address else None,
                "cpus": self._executor.cpus,
                "gpus": job.workspace.gpus,
            },
            placement_group_factory=PlacementGroupFactory(
                [{"CPU": self._executor.cpus, "GPU": job.workspace.gpus}]
            ),
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


def _cause(trial: Trial) -> tuple[str, str]:
    """Failure kind and message of a trial whose actor could not say what happened."""
    # `trial.get_pickled_error` looks where Tune has yet to copy this file.
    file = trial.pickled_error_file
    if file is None or not Path(file).exists():
        return "unknown", f"Ray Tune ended trial {trial.trial_id} and gave no reason"
    error = ray.cloudpickle.loads(Path(file).read_bytes())
    text = f"{type(error).__name__}: {error}"
    if getattr(error, _MEMORY_KILL, False):
        return "out-of-memory", text
    if isinstance(error, RayActorError) and not error.actor_init_failed:
        return "preempted", text
    return "unknown", text


class _Ear(tune.Callback):  # type: ignore[misc] # ray ships no types we could follow
    """Hears from Tune when a trial gets its actor, and when Tune has done with it."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed

    def on_trial_start(
        self,
        iteration: int,  # noqa: ARG002 - ray's signature
        trials: list[Trial],  # noqa: ARG002 - ray's signature
        trial: Trial,
        **info: Any,  # noqa: ANN401, ARG002 - ray's signature
    ) -> None:
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


@contextmanager
def _survive_memory_kills() -> Iterator[None]:
    """Make a kill by Ray's memory monitor the failure of one trial instead of the whole sweep.

    Ray raises OutOfMemoryError (or another error of the system) for the task, which is neither an
    actor's nor a task's error; Tune's event loop then raises RuntimeError. Seen in 2.60.
    """
    original = RayActorManager._actor_task_failed  # noqa: SLF001 - the bug is in there

    def tolerant(self: RayActorManager, tracked_actor_task: Any, exception: Exception) -> None:  # noqa: ANN401 - ray's type
        original(self, tracked_actor_task, _as_actor_error(exception))

    with _replaced(RayActorManager, "_actor_task_failed", tolerant):
        yield


@contextmanager
def _idle_actors_leave(after_s: float) -> Iterator[None]:
    """Let go of an actor that has waited for a job for so long.

    Tune keeps one idle actor while its search is not over, and ours is over when the last trial
    is: a node that is paid for would hold nothing but that actor for hours. Seen in 2.60.
    """
    original = TuneController._cleanup_cached_actors  # noqa: SLF001 - the cache is in there
    idle_since: float | None = None

    def impatient(self: TuneController, force_all: bool = False) -> None:
        nonlocal idle_since
        if not self._actor_cache.num_cached_objects:
            idle_since = None
        elif idle_since is None:
            idle_since = time.monotonic()
        is_over = idle_since is not None and time.monotonic() - idle_since > after_s
        original(self, force_all=force_all or is_over)

    with _replaced(TuneController, "_cleanup_cached_actors", impatient):
        yield


@contextmanager
def _silent(logger: str) -> Iterator[None]:
    """Keep a library's log off the terminal: the watch tells what matters there."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """Put something of ours in Ray's place for a while."""
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _as_actor_error(error: Exception) -> Exception:
    """The error itself if Tune can take it, else an actor's error that says the same."""
    known: tuple[type[Exception], ...] = (RayActorError, RayTaskError)
    if isinstance(error, known):
        return error
    lost: Exception = RayActorError(error_msg=f"{type(error).__name__}: {error}")
    setattr(lost, _MEMORY_KILL, isinstance(error, OutOfMemoryError))
    return lost


def try_ray() -> dict[str, Any]:
    """Join the cluster of `RAY_ADDRESS`, or start a Ray as a run would; run one task there.

    Returns:
        Version of Ray, nodes, cores, GPUs, and seconds until the task was done.
    """
    began = time.monotonic()
    with environment(_TUNE_ENVIRONMENT), connected(TuneExecutor()):
        ray.get(ray.remote(num_cpus=0)(lambda: os.getpid()).remote())  # noqa: PLW0108 - no builtins
        sizes = ray.cluster_resources()
        return {
            "version": ray.__version__,
            "nodes": sum(bool(node["Alive"]) for node in ray.nodes()),
            "cpus": sizes.get("CPU", 0.0),
            "gpus": sizes.get("GPU", 0.0),
            "seconds": time.monotonic() - began,
        }
