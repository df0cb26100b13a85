"""What Ray and Tune do wrong, put right for as long as a block lasts."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError
from ray.tune.execution import tune_controller
from ray.tune.execution.class_cache import _ActorClassCache
from ray.tune.execution.tune_controller import TuneController
from ray.tune.registry import _Registry

_MANY_ENDED = 100

MEMORY_KILL = "is_memory_kill"
"""Attribute of an actor's error: Ray's memory monitor killed it."""


@contextmanager
def survive_memory_kills() -> Iterator[None]:
    """Make a kill by Ray's memory monitor the failure of one trial instead of the whole sweep.

    Ray raises OutOfMemoryError (or another error of the system) for the task, which is neither an
    actor's nor a task's error; Tune's event loop then raises RuntimeError. Seen in 2.60.
    """
    original = RayActorManager._actor_task_failed  # noqa: SLF001 - the bug is in there

    def tolerant(self: RayActorManager, tracked_actor_task: Any, exception: Exception) -> None:  # noqa: ANN401 - ray's type
        original(self, tracked_actor_task, as_actor_error(exception))

    with replaced(RayActorManager, "_actor_task_failed", tolerant):
        yield


@contextmanager
def idle_actors_leave(after_s: float) -> Iterator[None]:
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

    with replaced(TuneController, "_cleanup_cached_actors", impatient):
        yield


@contextmanager
def starting_actors_stay(has_more: Callable[[], bool]) -> Iterator[None]:
    """Let an actor that is starting serve the trial that it was started for.

    Tune gives an actor that becomes free to the first trial that waits, and ends the one that is
    starting for it. Where trials are shorter than the start of an actor (half a minute on a busy
    machine) the actors that came first serve all trials, and the others are started and ended for
    ever: 8 of 16 slots stood empty. Seen in 2.60.

    Args:
        has_more: Whether another trial is at hand for the actor that is free; if none is, the
            first trial that waits takes it all the same.
    """
    original = TuneController._maybe_reuse_cached_actor  # noqa: SLF001 - as above

    def patient(self: TuneController, trial: Any) -> bool:  # noqa: ANN401 - ray's type
        own = self._trial_to_actor.get(trial)
        is_starting = (
            own is not None
            and self._actor_manager.is_actor_started(own)  # it has its resources
            and own not in self._started_actors
        )
        if is_starting and trial not in self._resetting_trials and has_more():
            return False
        return bool(original(self, trial))

    with replaced(TuneController, "_maybe_reuse_cached_actor", patient):
        yield


@contextmanager
def names_are_remembered() -> Iterator[None]:
    """Ask the cluster once which class a name means.

    Tune asks three times a trial, and waits for the answer: a sixth of its loop. Seen in 2.60.
    """
    contains, get = _Registry.contains, _Registry.get
    known: dict[tuple[str, str], Any] = {}

    def remembered(self: _Registry, category: str, key: str) -> Any:  # noqa: ANN401 - whatever was registered
        if (category, key) not in known:
            known[category, key] = get(self, category, key)
        return known[category, key]

    def is_known(self: _Registry, category: str, key: str) -> bool:
        return (category, key) in known or bool(contains(self, category, key))

    with replaced(_Registry, "get", remembered), replaced(_Registry, "contains", is_known):
        yield


@contextmanager
def ended_trials_are_forgotten() -> Iterator[None]:
    """Let go of trials that have ended.

    Tune keeps them all, 10 kB each, and at each step looks twice through the list for one that
    waits: with 10,000 that is a tenth of its time, and it grows. Seen in 2.60.
    """
    original = TuneController.on_step_end

    def forgetful(self: TuneController) -> None:
        original(self)
        if len(self._stopped_trials) + len(self._failed_trials) < _MANY_ENDED:
            return
        last = self._trials[-1]  # one stays: without any, Tune looks for a state on the disk
        ended = (self._stopped_trials | self._failed_trials) - {last, *self._trial_to_actor}
        self._trials[:] = [trial for trial in self._trials if trial not in ended]
        self._stopped_trials -= ended
        self._failed_trials -= ended

    with replaced(TuneController, "on_step_end", forgetful):
        yield


@contextmanager
def actors_are_light(actor: type) -> Iterator[None]:
    """Have Tune make actors of a plain class, and tell them their configuration and no more.

    A Trainable imports the whole of Tune in each worker, pandas and Ray Data with it, and gets
    objects of theirs with every trial (where to store, how it is called). Seen in 2.60.

    Args:
        actor: Has the methods that Tune calls on an actor: `train`, `reset`, `stop`.
    """
    made, sent = _ActorClassCache.get, TuneController._schedule_trial_task  # noqa: SLF001 - as above

    def of_ours(self: _ActorClassCache, trainable: type) -> Any:  # noqa: ANN401 - ray's type
        del trainable
        return made(self, actor)

    def first(trial: Any) -> dict[str, Any]:  # noqa: ANN401 - ray's type
        return {"config": dict(trial.config)}  # the trial may end before the actor starts

    def send(self: TuneController, trial: Any, method_name: str, **more: Any) -> Any:  # noqa: ANN401 - ray's types
        if method_name == "reset":
            more |= {"args": (dict(trial.config),), "kwargs": {}}
        return sent(self, trial, method_name, **more)

    with (
        replaced(_ActorClassCache, "get", of_ours),
        replaced(tune_controller, "_get_trainable_kwargs", first),
        replaced(TuneController, "_schedule_trial_task", send),
    ):
        yield


@contextmanager
def states_are_not_kept() -> Iterator[None]:
    """Keep Tune from looking, at each step, whether its state is to be saved again.

    We never do (`TUNE_GLOBAL_CHECKPOINT_S`); it looks up its folders first: a sixteenth of its
    time. What it saves at its end stays. Seen in 2.60.
    """
    original = TuneController.checkpoint

    def seldom(self: TuneController, force: bool = False, wait: bool = False) -> None:
        if force:
            original(self, force=force, wait=wait)

    with replaced(TuneController, "checkpoint", seldom):
        yield


@contextmanager
def silent(logger: str) -> Iterator[None]:
    """Keep a library's log off the terminal: the watch tells what matters there."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """Put something of ours in Ray's place for a while."""
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def as_actor_error(error: Exception) -> Exception:
    """The error itself if Tune can take it, else an actor's error that says the same."""
    known: tuple[type[Exception], ...] = (RayActorError, RayTaskError)
    if isinstance(error, known):
        return error
    lost: Exception = RayActorError(error_msg=f"{type(error).__name__}: {error}")
    setattr(lost, MEMORY_KILL, isinstance(error, OutOfMemoryError))
    return lost
