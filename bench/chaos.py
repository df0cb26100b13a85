"""Recovery: a study of short trials while workers, nodes and drivers are killed at random.

Run as `python -m bench.chaos [--trials 60 --kills 50 --seed 1]`; prints JSON, and ends with 1 when
a promise was broken: every trial committed, none twice, all tables equal to the bit to those of a
quiet run, no attempt that lost more than a checkpoint interval of training, and no attempt that
began before the newest checkpoint. Training is real; the cluster is a real Ray of a head and two
worker nodes on this machine; every kill is SIGKILL, of a process that trains, of a raylet, or of
the driver, which is then started again as its user would.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import chaos_log
from bench.chaos_study import write_study
from bench.machine import machine

SHARES = {"worker": 0.6, "node": 0.2, "driver": 0.2}
"""What is killed, how often."""

NODES, TRIES, LIVE_S, PATIENCE_S = 2, 5, 10.0, 600.0

MEASURED = {
    "scores": ("trial_id", "split", "treebank", "language", "data_key", "metric", "value", "n"),
    "similarity": (
        *("trial_id", "state", "source", "target", "source_key", "target_key", "layer"),
        *("measure", "value", "n", "null_mean", "null_95", "options"),
    ),
    "curves": ("trial_id", "step", "epoch", "loss", "dev_metric", "dev_value", "learning_rate"),
}
"""Columns that hold what was measured."""


def drive(study: str, store: str, executor: str) -> int:
    """Be the driver: what `sweep run` does, with the worker that takes notes."""
    from sweep.run import run_study
    from sweep.study import load_study

    summary = run_study(
        load_study(study),
        store=store,
        executor="tune" if executor == "tune" else "local",
        workers=NODES,
        track=False,
        worker=chaos_log.WORKER,
    )
    return 0 if summary.is_complete else 1


def driver(study: Path, store: Path, executor: str, address: str = "") -> "subprocess.Popen[bytes]":
    """Start a driver; its words go to a file beside the store."""
    command = [sys.executable, "-m", "bench.chaos", "--drive", str(study), str(store), executor]
    environment = os.environ | {"XLING_CACHE": str(study.parent / "cache"), "NO_COLOR": "1"}
    environment.pop("RAY_ADDRESS", None)
    if address:
        environment["RAY_ADDRESS"] = address
    with Path(f"{store}.err").open("ab") as err:
        return subprocess.Popen(  # noqa: S603 - ourselves
            command, env=environment, stdout=err, stderr=err
        )


class Nodes:
    """A Ray of its own: a head that runs no trial, and worker nodes of one core each."""

    def __init__(self) -> None:
        """Start it."""
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head | _agent_ports())
        self._workers = [self._add() for _ in range(NODES)]
        self.address: str = self._cluster.address

    def kill(self, index: int) -> None:
        """Kill a node's raylet as a crash would, sweep up the rest, and let a new node join."""
        node = self._workers[index]
        (raylet,) = node.all_processes["raylet"]
        os.kill(raylet.process.pid, signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)
        for _ in range(TRIES):
            try:
                self._workers[index] = self._add()
            except Exception as error:  # noqa: BLE001 - Ray raises just that on a busy machine
                say(f"a node did not come up in time and is started again: {error}")
            else:
                return
        raise RuntimeError(f"no new node in {TRIES} tries: the machine is too busy for this run")

    def close(self) -> None:
        """End all its processes."""
        self._cluster.shutdown()

    def _add(self) -> Any:  # noqa: ANN401 - ray ships no types
        return self._cluster.add_node(num_cpus=1, wait=True, **_agent_ports())


def _agent_ports() -> dict[str, int]:
    """Free ports for a node's helpers.

    A raylet that lets them choose waits for their answer, and gives up too soon on a busy machine.
    """
    names = (
        *("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port"),
        "dashboard_agent_listen_port",
    )
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        ports = [each.getsockname()[1] for each in sockets]
    return dict(zip(names, ports, strict=True))


@dataclass(slots=True)
class Ears:
    """Follows the log: which processes train right now."""

    path: Path
    training: dict[int, float] = field(default_factory=dict)
    _at: int = 0

    def listen(self) -> list[int]:
        """Processes that took a step in the last seconds and still live, by pid."""
        if self.path.exists():
            with self.path.open("rb") as log:
                log.seek(self._at)
                new = log.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._at += len(whole)
            for text in whole.splitlines():
                line = json.loads(text)
                if line["what"] == "step":
                    self.training[line["pid"]] = line["t"]
                elif line["what"] == "commit":
                    self.training.pop(line["pid"], None)
        now = time.time()
        return sorted(p for p, at in self.training.items() if now - at < LIVE_S and is_alive(p))


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return False


class Chaos:
    """One study under fire."""

    def __init__(self, study: Path, store: Path, options: argparse.Namespace) -> None:
        """Prepare; `run` begins."""
        self.study, self.store, self.options = study, store, options
        self.rng = random.Random(options.seed)
        self.done: Counter[str] = Counter()
        self.recovery_s: dict[str, list[float]] = {kind: [] for kind in SHARES}

    def run(self) -> int:
        """Kill until all kills are done, then let the study end; the last driver's exit code."""
        nodes = Nodes()
        try:
            return self._run(nodes)
        finally:
            nodes.close()

    def _run(self, nodes: Nodes) -> int:
        ears = Ears(Path(f"{self.store}.log"))
        process = driver(self.study, self.store, "tune", nodes.address)
        try:
            for number, kind in enumerate(self._kinds(), start=1):
                if not self._wait_for_training(ears, process):
                    break
                time.sleep(self.rng.uniform(0, self.options.gap_s))
                victims = ears.listen()
                ears.training.clear()
                at = time.time()
                if kind == "worker" and victims:
                    os.kill(self.rng.choice(victims), signal.SIGKILL)
                elif kind == "node":
                    nodes.kill(self.rng.randrange(NODES))
                else:  # a worker that has just ended is no victim; the driver always is
                    kind = "driver"  # noqa: PLW2901 - what was done is what is counted
                    process.kill()
                    process.wait()
                    process = driver(self.study, self.store, "tune", nodes.address)
                self.done[kind] += 1
                say(f"kill {number}: {kind}")
                # A dead driver's workers take a step or two more before they are ended.
                dying = victims if kind == "driver" else ()
                if self._wait_for_training(ears, process, dying):
                    self.recovery_s[kind].append(time.time() - at)
            return process.wait(timeout=3600)
        finally:
            process.kill()

    def _kinds(self) -> list[str]:
        n = self.options.kills
        kinds = [kind for kind, share in SHARES.items() for _ in range(round(share * n))]
        kinds = (kinds + ["worker"] * n)[:n]
        self.rng.shuffle(kinds)
        return kinds

    def _wait_for_training(
        self, ears: Ears, process: "subprocess.Popen[bytes]", besides: Collection[int] = ()
    ) -> bool:
        """Wait until some process, besides some, trains; False when the study has ended."""
        until = time.time() + PATIENCE_S
        while not set(ears.listen()) - set(besides):
            if process.poll() is not None:
                return False
            if time.time() > until:
                raise TimeoutError(f"nothing trained for {PATIENCE_S:.0f} s; see {self.store}.err")
            time.sleep(0.1)
        return True


def measured(store: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that a store's tables say was measured, in one order."""
    from sweep.ledger import Ledger

    ledger = Ledger(str(store))
    return {
        name: sorted(
            zip(*(ledger.table(name).column(c).to_pylist() for c in columns), strict=True), key=repr
        )
        for name, columns in MEASURED.items()
    }


def verdict(chaos: Path, quiet: Path, options: argparse.Namespace) -> dict[str, object]:
    """Figures of a run under fire, and which promises it broke."""
    from sweep.ledger import Ledger

    rows = Ledger(str(chaos)).table("trials").to_pylist()
    done = Counter(row["trial_id"] for row in rows if row["status"] == "done")
    attempts = chaos_log.read_log(Path(f"{chaos}.log"))
    lost = chaos_log.losses(attempts, options.checkpoint_s)
    commits = Counter(a.trial for a in attempts for is_new in a.commits if is_new)
    steps, again = chaos_log.recomputed(attempts)
    ours, theirs = measured(chaos), measured(quiet)
    wrong = chaos_log.wrong_resumptions(attempts)
    over = [loss for loss in lost if loss.seconds > loss.allowed_s]
    broken = {
        "lost trials": options.trials - len(done),
        "trials committed twice": sum(n > 1 for n in (*commits.values(), *done.values())),
        "tables that differ": [name for name in MEASURED if ours[name] != theirs[name]],
        "attempts that lost more than an interval": len(over),
        "attempts that passed over a checkpoint": wrong,
    }
    return {
        "broken": {what: found for what, found in broken.items() if found},
        "trials": len(done),
        "rows_equal": {name: len(rows) for name, rows in ours.items()},
        "attempts": len(attempts),
        "attempts_broken": len(lost),
        "second_commits_turned_away": sum(a.commits.count(False) for a in attempts),
        "steps_taken": steps,
        "steps_taken_again": again,
        "checkpoint_interval_s": options.checkpoint_s,
        "lost_s_max": round(max((loss.seconds for loss in lost), default=0.0), 2),
        "lost_s_allowed_then": round(
            max(lost, key=lambda loss: loss.seconds).allowed_s if lost else 0.0, 2
        ),
        "lost_s_mean": round(sum(loss.seconds for loss in lost) / max(1, len(lost)), 2),
    }


def say(text: str) -> None:
    """Tell what happens, on stderr."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - its output


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--sentences", type=int, default=240)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--checkpoint-s", type=float, default=1.0)
    parser.add_argument("--gap-s", type=float, default=2.0, help="longest wait before a kill")
    parser.add_argument("--drive", nargs=3, metavar=("STUDY", "STORE", "EXECUTOR"))
    return parser.parse_args()


def main() -> int:
    """The quiet run, the run under fire, and their comparison; JSON on standard output."""
    options = parsed()
    if options.drive:
        return drive(*options.drive)
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_gcs_server_request_timeout_seconds": "300",  # others may work on this machine, too
    }
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        folder = Path(name)
        study = write_study(
            folder,
            n_trials=options.trials,
            sentences=options.sentences,
            epochs=options.epochs,
            checkpoint_s=options.checkpoint_s,
        )
        began = time.time()
        quiet = driver(study, folder / "quiet", "local")
        if quiet.wait() != 0:
            say((folder / "quiet.err").read_text(encoding="utf-8"))
            return 1
        quiet_s = time.time() - began
        say(f"quiet run: {quiet_s:.0f} s")
        chaos = Chaos(study, folder / "chaos", options)
        began = time.time()
        code = chaos.run()
        figures = verdict(folder / "chaos", folder / "quiet", options)
        words = (folder / "chaos.err").read_text(encoding="utf-8")
    kills = sum(chaos.done.values())
    report = {
        "seed": options.seed,
        "kills": dict(chaos.done),
        **figures,
        "driver_exit": code,
        "quiet_s": round(quiet_s, 1),
        "chaos_s": round(time.time() - began, 1),
        "recovery_s_median": {
            kind: round(sorted(found)[len(found) // 2], 1)
            for kind, found in chaos.recovery_s.items()
            if found
        },
        **machine("ray", "torch", "pyarrow"),
    }
    print(json.dumps(report, indent=1))  # noqa: T201 - its output
    if code or kills < options.kills or figures["broken"]:
        say(words)
        say(f"{kills} of {options.kills} kills; driver ended with {code}; {figures['broken']}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
