"""A sweep on a cluster that grows and shrinks, and loses and replaces a node; for real but small.

Run by `test_autoscaling.py` in namespaces of its own: Ray's fake multi-node autoscaler starts real
raylets on this machine, and its start stops any Ray it finds. Prints one JSON object.
"""

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path

import psutil
import ray
from cluster_jobs import BUSY, LONG, job
from ray.cluster_utils import AutoscalingCluster

from sweep.schedule import FixedSchedule
from sweep.tune import TuneExecutor

HEAD = "ray.head.default"  # the provider's own name for it
MOST = 3
CPUS, GPUS = 0.25, 0.5  # two trials a node
N_BUSY = 5
LIMIT_S = 500

_BASE = {
    "cluster_name": "fake_multinode",
    "provider": {
        "type": "external",
        "module": "mortal_nodes.Provider",
        "use_node_id_as_ip": True,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    },
    "head_node_type": HEAD,
    "upscaling_speed": 10,
    "auth": {},
    "docker": {},
    "file_mounts": {},
    "file_mounts_sync_continuously": False,
    **{
        key: []
        for key in (
            *("initialization_commands", "setup_commands", "head_setup_commands"),
            *("worker_setup_commands", "head_start_ray_commands", "worker_start_ray_commands"),
            *("cluster_synced_files", "rsync_exclude", "rsync_filter"),
        )
    },
}


class Cluster(AutoscalingCluster):
    """The wheel lacks the file that the original starts its configuration from."""

    def _generate_config(self, head_resources, worker_node_types, **settings):
        settings.pop("autoscaler_v2", None)
        head = {"resources": dict(head_resources), "node_config": {}, "max_workers": 0}
        return _BASE | {"available_node_types": {**worker_node_types, HEAD: head}} | settings


class Notes:
    """A watch that writes down how jobs ended."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, int, str, str | None]] = []

    def started(self, job) -> None:
        """Nothing to note."""

    def epoch(self, job, point) -> None:
        """Nothing to note."""

    def finished(self, job, outcome, *, retried) -> None:  # noqa: ARG002 - protocol
        """Note the end."""
        self.ends.append((job.job_id, job.attempt, outcome.status, outcome.failure_kind))


class Story:
    """What happens to the cluster while the sweep runs, in the order in which it is wished for."""

    def __init__(self, folder: Path, notes: Notes) -> None:
        self.folder, self.notes = folder, notes
        self.began = time.monotonic()
        self.seen: dict[str, object] = {"nodes": []}
        self.ever: set[str] = set()

    def workers(self) -> int:
        """Worker nodes that live now; each change is noted with its time."""
        alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        self.ever |= set(alive)
        n = len(alive) - 1
        history = self.seen["nodes"]
        if not history or history[-1][1] != n:
            history.append((round(time.monotonic() - self.began, 1), n))
        return n

    def tell(self) -> None:
        """Wait for each thing in turn; the sweep cannot end before the last but one."""
        steps = (
            ("grew to its most", lambda: self.workers() == MOST),
            ("all nodes at work", lambda: len(self.raylets_at_work()) == MOST),
            ("killed a node", self.kill_a_node),
            ("had another node", self.has_another_node),
            ("all at work again", lambda: len(self.raylets_at_work()) == MOST),
            ("hurried", self.hurry),
            ("only the long job is left", self.is_tail),
            ("shrank to the node of the long job", lambda: self.workers() == 1),
        )
        for name, happened in steps:
            self.until(name, happened)
        (self.folder / "release").touch()

    def until(self, name: str, happened) -> None:
        """Look until it has happened; a story that stops ends the process, with what was seen."""
        while not happened():
            if time.monotonic() - self.began > LIMIT_S:
                ends = sorted(self.notes.ends)
                sys.stderr.write(json.dumps({"missing": name, "ends": ends} | self.seen))
                sys.stderr.flush()
                os._exit(1)
            time.sleep(0.3)
        self.seen[name] = round(time.monotonic() - self.began, 3)

    def raylets_at_work(self) -> set[int]:
        """Processes that run the nodes on which a job has begun an epoch."""
        actors = [int(path.name) for path in (self.folder / "at-work").glob("*")]
        found = set()
        for pid in actors:
            try:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process.ppid())
            except psutil.NoSuchProcess:
                continue
        return found

    def kill_a_node(self) -> bool:
        """Kill -9 of a raylet that does not run the long job, and of all it runs, as power does."""
        long_one = psutil.Process(int((self.folder / "long-pid").read_text())).ppid()
        raylet = psutil.Process(min(self.raylets_at_work() - {long_one}))
        for process in (raylet, *raylet.children(recursive=True)):
            process.kill()
        return True

    def has_another_node(self) -> bool:
        """Whether as many nodes live as before, and one of them is new."""
        if self.workers() < MOST or len(self.ever) < MOST + 2:  # the head is among them
            return False
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        self.seen["lost"] = sorted(self.ever - alive)
        return len(alive) == MOST + 1

    def hurry(self) -> bool:
        """Let all jobs but the long one end."""
        (self.folder / "hurry").touch()
        return True

    def is_tail(self) -> bool:
        """Whether all jobs but the long one are done."""
        done = {name for name, _, status, _ in self.notes.ends if status == "done"}
        return done == {f"{BUSY}{i}" for i in range(N_BUSY)}


def main() -> None:
    """Run the sweep, and the story beside it."""
    folder = Path(sys.argv[1])
    notes = Notes()
    story = Story(folder, notes)
    cluster = Cluster(
        head_resources={"CPU": 0},
        worker_node_types={
            "gpu": {
                "resources": {"CPU": 2, "GPU": 1},
                "node_config": {},
                "min_workers": 0,
                "max_workers": MOST,
            }
        },
        idle_timeout_minutes=0.1,
        max_workers=MOST,
    )
    cluster.start()
    code = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
    ray.init("auto", log_to_driver=False, logging_level=logging.ERROR, runtime_env=code)
    names = [LONG, *(f"{BUSY}{i}" for i in range(N_BUSY))]
    jobs = [job(folder, name, gpus=GPUS) for name in names]
    threading.Thread(target=story.tell, daemon=True).start()
    executor = TuneExecutor(
        len(jobs), cpus=CPUS, address="auto", worker="cluster_jobs:start", idle_s=2.0
    )
    executor.run(FixedSchedule(jobs), notes)
    story.seen["ended"] = round(time.monotonic() - story.began, 3)
    story.until("no worker is left", lambda: story.workers() == 0)
    epochs = {path.name: path.read_text().split() for path in sorted((folder / "epochs").iterdir())}
    told = {"ends": sorted(notes.ends), "epochs": epochs}
    sys.stdout.write(f"\n{json.dumps(told | story.seen)}\n")
    sys.stdout.flush()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
