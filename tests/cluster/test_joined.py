"""A sweep on a Ray that others started: what workers get, refuse and give back."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # worker processes import the made-up jobs, too
import cluster_jobs as made

from sweep.commit import code_version
from sweep.executor import ClusterError
from sweep.schedule import FixedSchedule

pytestmark = [
    pytest.mark.ray,
    # Ray leaves sockets and log files to the garbage collector, and forks while threads run.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WORKER = "cluster_jobs:start"


class Notes:
    """A watch that writes down how jobs ended, and rings when one has."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, str | None, str]] = []
        self.ended = threading.Event()

    def started(self, job) -> None:
        """Nothing to note."""

    def epoch(self, job, point) -> None:
        """Nothing to note."""

    def finished(self, job, outcome, *, retried) -> None:
        """Note the end."""
        self.ends.append((job.job_id, outcome.failure_kind, outcome.message))
        if not retried:
            self.ended.set()


@pytest.fixture(scope="module")
def address():
    """A Ray of two cores that was started by others."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
        )
        yield cluster.address
        cluster.shutdown()


def executor(address, **options):
    """An executor that joins that Ray."""
    from sweep.tune import TuneExecutor

    return TuneExecutor(2, address=address, worker=WORKER, **options)


def test_workers_run_the_drivers_code_and_say_whose_it_is(address, tmp_path, monkeypatch):
    """The packages come from the driver, not from what the node has installed."""
    monkeypatch.chdir(tmp_path)  # Ray puts the driver's folder first
    import ray

    from sweep.tune import connected

    def asked():
        import sweep.commit

        return sweep.commit.__file__, sweep.commit.code_version()

    with connected(executor(address)):
        file, version = ray.get(ray.remote(asked).remote())
    assert "py_modules" in file
    assert version == code_version()


BESIDE = """
import sys
import ray
from sweep.tune import TuneExecutor, connected
with connected(TuneExecutor(3)):
    assert ray.cluster_resources()["CPU"] == 3
    assert ray.get_runtime_context().gcs_address != sys.argv[1]
"""


def test_a_ray_of_our_own_starts_beside_one_that_somebody_has_started(address):
    """By itself Ray joins what `ray start --head` left on the machine; RAY_ADDRESS asks for it."""
    from ray._private.utils import get_ray_address_file, write_ray_address

    write_ray_address(address)  # as `ray start --head` does
    try:
        # A process of its own: one that has had a Ray on loopback cannot join another one well.
        subprocess.run([sys.executable, "-c", BESIDE, address], check=True)
    finally:
        Path(get_ray_address_file(None)).unlink()


def test_a_node_that_does_not_see_the_store_refuses_and_the_sweep_stops(address, tmp_path):
    """Nothing is run into a folder that the driver cannot see; three refusals are enough."""
    jobs = [made.job(tmp_path, f"{made.BUSY}{i}") for i in range(8)]
    notes = Notes()
    executor(address, mark="of a driver elsewhere").run(FixedSchedule(jobs), notes)
    assert {kind for _, kind, _ in notes.ends} == {"storage"}
    assert len(notes.ends) < len(jobs)
    assert f"does not see the driver's store {tmp_path}" in notes.ends[0][2]
    assert not (tmp_path / "epochs").exists()


def test_an_idle_actor_does_not_keep_its_place_while_the_last_trial_runs(address, tmp_path):
    """When nothing waits any more, what a finished trial held is free again."""
    import ray

    (tmp_path / "hurry").touch()
    notes, left = Notes(), []

    def wait_for_room():
        notes.ended.wait()
        for _ in range(1200):  # two minutes at most
            if ray.available_resources().get("CPU", 0) >= 1:
                left.append(True)
                break
            threading.Event().wait(0.1)
        (tmp_path / "release").touch()

    jobs = [made.job(tmp_path, made.LONG), made.job(tmp_path, f"{made.BUSY}0")]
    watcher = threading.Thread(target=wait_for_room)
    watcher.start()
    executor(address, idle_s=0.5).run(FixedSchedule(jobs), notes)
    watcher.join()
    assert [kind for _, kind, _ in notes.ends] == [None, None]
    assert left == [True]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            RuntimeError("Version mismatch: The cluster was started with:\n Ray: 2.59"),
            "Version mismatch: The cluster was started with: Ray: 2.59 Make both environments by",
        ),
        (RuntimeError("InvalidAuthToken"), "Set RAY_AUTH_MODE=token"),
        (ConnectionError("Could not find any running Ray"), "no Ray cluster answers there"),
    ],
)
def test_a_cluster_that_cannot_be_joined_says_why(error, told, monkeypatch):
    """Ray's errors become one line with the address and the mend."""
    import ray

    from sweep.tune import connected

    def init(**_):
        raise error

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ClusterError, match=r"RAY_ADDRESS = 10\.0\.0\.1:6379: ") as caught:
        connected(executor("10.0.0.1:6379")).__enter__()
    assert told in str(caught.value)
