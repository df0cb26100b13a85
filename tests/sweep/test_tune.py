"""What `sweep.tune` mends in Ray, and what it keeps from leaking out."""

import os

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*")]


class Task:
    """A task of an actor, as the actor manager tracks it, that notes what it is told."""

    def __init__(self) -> None:
        self._tracked_actor = self
        self.actor_id = 1
        self.told: list[Exception] = []

    def _on_error(self, _: object, exception: Exception) -> None:
        self.told.append(exception)


def manager():
    """An actor manager that has no actors to clean up."""
    from ray.air.execution._internal.actor_manager import RayActorManager

    made = RayActorManager.__new__(RayActorManager)
    made._failed_actor_ids = set()
    made._cleanup_actor = lambda **_: None
    return made


def test_ray_still_has_the_bug_that_is_mended() -> None:
    """Without the mend, a kill by the memory monitor ends the event loop of the whole sweep."""
    from ray.exceptions import OutOfMemoryError

    with pytest.raises(RuntimeError, match="unexpected exception"):
        manager()._actor_task_failed(
            tracked_actor_task=Task(), exception=OutOfMemoryError("node is low on memory")
        )


def test_a_memory_kill_becomes_the_failure_of_one_trial() -> None:
    """With the mend, the trial hears an actor's error that still says it was about memory."""
    from ray.exceptions import OutOfMemoryError, RayActorError

    from sweep.tune.mending import survive_memory_kills

    task = Task()
    with survive_memory_kills():
        manager()._actor_task_failed(
            tracked_actor_task=task, exception=OutOfMemoryError("node is low on memory")
        )
    assert {type(error) for error in task.told} == {RayActorError}
    assert "node is low on memory" in str(task.told[0])


def test_the_mend_is_taken_back() -> None:
    """Outside a sweep Ray is as it came."""
    from ray.air.execution._internal.actor_manager import RayActorManager

    from sweep.tune.mending import survive_memory_kills

    before = RayActorManager._actor_task_failed
    with survive_memory_kills():
        assert RayActorManager._actor_task_failed is not before
    assert RayActorManager._actor_task_failed is before


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("memory", "out-of-memory"),
        ("died", "preempted"),
        ("init", "unknown"),
        ("raised", "unknown"),
        ("none", "unknown"),
    ],
)
def test_errors_are_sorted_by_what_should_follow(error: str, kind: str, tmp_path) -> None:
    """A lost actor is free to try again; one that cannot start, or raised, is not."""
    import ray
    from ray.exceptions import ActorDiedError, OutOfMemoryError, RayActorError

    from sweep.tune.mending import as_actor_error
    from sweep.tune.trials import _cause

    errors = {
        "memory": as_actor_error(OutOfMemoryError("node is low on memory")),
        "died": ActorDiedError(),
        "init": RayActorError(error_msg="no module named sweep", actor_init_failed=True),
        "raised": RuntimeError("boom"),
    }
    file = tmp_path / "error.pkl"
    if error in errors:
        file.write_bytes(ray.cloudpickle.dumps(errors[error]))

    class Trial:
        """What is read of a trial."""

        trial_id = "t"
        pickled_error_file = str(file)

    assert _cause(Trial())[0] == kind


@pytest.mark.parametrize("n_faults", [1, 2])
def test_a_ray_that_does_not_start_is_tried_twice(monkeypatch, n_faults) -> None:
    """On a busy machine Ray may give up on itself; when it does so twice, the error says why."""
    from sweep.executor import ClusterError
    from sweep.tune import connection

    started: list[int] = []

    def init(**settings: int) -> None:
        started.append(settings["num_cpus"])
        if len(started) <= n_faults:
            raise Exception("The current node timed out during startup.")  # noqa: TRY002 - as Ray does

    monkeypatch.setattr(connection.ray, "init", init)
    if n_faults == 1:
        connection._start(num_cpus=3)
    else:
        with pytest.raises(ClusterError, match=r"timed out during startup\. .*--executor local"):
            connection._start(num_cpus=3)
    assert started == [3, 3]


@pytest.mark.slow
def test_no_signal_to_our_process_group_reaches_ray() -> None:
    """Each process of a Ray of our own leads a group: `timeout` and shells signal whole groups."""
    from ray._private import worker

    from sweep.tune import TuneExecutor, connected

    with connected(TuneExecutor(1)):
        started = [info.process.pid for kind in worker.global_worker.node.all_processes.values()
                   for info in kind]  # fmt: skip
        assert len(started) >= 2  # a head and a raylet
        assert [os.getpgid(pid) for pid in started] == started
