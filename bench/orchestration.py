"""Budget: 10,000 one-second trials on 16 slots: 715 s; driver memory below 20 kB a trial.

Run as `python -m bench.orchestration [--trials 10000 --slots 16]`; prints JSON. Trials sleep, so
that slots need no cores. Ours runs with all that a sweep has: commits flushed to the disk, ledger,
compaction, MLflow. Bare Tune runs the same sleep as a class with reused actors, its fastest form,
with Tune's own loggers. Each side has a process of its own, one after the other; the start of Ray
is left out of both.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.machine import machine
from bench.madeup import SECONDS, WORKER, study_of, write_files

BUDGET_S, BUDGET_BYTES = 715.0, 20_000
_PERIOD_S = 0.5
_TRIES = 6
_WARM = 0.2  # share of the trials after which memory is looked at for the first time


@dataclass
class Meter:
    """Trials that have ended, and the memory of this process, over time."""

    n: int = 0
    trials_ended: float = 0.0
    """When the last trial had ended, where that is not the end of it all."""
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __reduce__(self) -> tuple[type["Meter"], tuple[()]]:
        """Tune pickles whatever its callbacks hold, for a resumption that never comes here."""
        return Meter, ()

    def begin(self) -> None:
        """Sample twice a second until `end`."""
        self.began = time.monotonic()
        threading.Thread(target=self._sample, daemon=True).start()

    def end(self, trials: int) -> dict[str, float]:
        """Seconds, trials a second in the steady middle, bytes of memory a trial."""
        self._stop.set()
        wall = time.monotonic() - self.began
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.samples.append((time.monotonic(), self.n, _memory()))
        middle = [one for one in self.samples if one[1] >= _WARM * trials] or self.samples
        (t0, n0, m0), (t1, n1, m1) = middle[0], middle[-1]
        return {
            "wall_s": round(wall, 1),
            "trials_s": round((self.trials_ended or time.monotonic()) - self.began, 1),
            "driver_cpu_s": round(used.ru_utime + used.ru_stime, 1),
            "trials_per_s": round((n1 - n0) / max(1e-9, t1 - t0), 2),
            "memory_bytes_a_trial": round((m1 - m0) / max(1, n1 - n0)),
            "memory_bytes": m1,
        }

    def _sample(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            self.samples.append((time.monotonic(), self.n, _memory()))


def _memory() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _patiently(enter: Callable[[], object]) -> None:
    """Start Ray, which gives up on itself after 30 s, often enough for a busy machine."""
    for left in reversed(range(_TRIES)):
        try:
            enter()
        except Exception:
            if not left:
                raise
        else:
            return


def ours(options: argparse.Namespace, root: Path) -> dict[str, object]:
    """A study of so many seeds through `run_study`, everything on."""
    from rich.console import Console

    from sweep.run import run_study
    from sweep.schedule import Schedule
    from sweep.tune import TuneExecutor, connected

    meter = Meter()

    class Counted:
        """The real executor, with every end counted."""

        def run(self, schedule: Schedule, watch: object) -> None:
            inner = getattr(watch, "finished")  # noqa: B009 - patched on this object only

            def finished(*args: object, **more: object) -> None:
                meter.n += 1
                inner(*args, **more)

            watch.finished = finished  # type: ignore[attr-defined] # as said
            executor.run(schedule, watch)  # type: ignore[arg-type] # a watch, still
            meter.trials_ended = time.monotonic()

    write_files(root)
    study = study_of(root, options.trials, tracking={"enabled": not options.no_track})
    executor = TuneExecutor(options.slots, worker=WORKER)
    with ExitStack() as stack, (root / "progress").open("w") as log:
        _patiently(lambda: stack.enter_context(connected(executor)))
        meter.begin()
        summary = run_study(study, executor=Counted(), console=Console(file=log))
    told = meter.end(options.trials)
    assert summary.done == options.trials, summary  # noqa: S101 - a bench of failures is none
    files = [path for path in (root / "store").rglob("*") if path.is_file()]
    return {
        **told,
        "untracked": summary.untracked,
        "store_files": len(files),
        "store_bytes": sum(path.stat().st_size for path in files),
    }


def bare(options: argparse.Namespace, root: Path) -> dict[str, object]:
    """The same sleep in Tune as it comes, actors reused."""
    os.environ |= {"RAY_AIR_NEW_OUTPUT": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    import ray
    from ray import tune

    meter = Meter()

    class Sleep(tune.Trainable):  # type: ignore[misc] # ray ships no types
        """One step of so many seconds."""

        def step(self) -> dict[str, object]:
            time.sleep(options.seconds)
            return {"accuracy": 0.9, "done": True}

        def reset_config(self, new_config: dict[str, object]) -> bool:
            return bool(new_config) or True

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            """Nothing to keep."""

    class Count(tune.Callback):  # type: ignore[misc] # as above
        """Counts ends."""

        def on_trial_complete(self, *_: object, **__: object) -> None:
            meter.n += 1

    settings = {"num_cpus": options.slots, "include_dashboard": False, "log_to_driver": False}
    _patiently(lambda: ray.shutdown() or ray.init(**settings))
    meter.begin()
    tune.Tuner(
        Sleep,
        param_space={"seed": tune.grid_search(list(range(options.trials)))},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(
            name="bare",
            storage_path=str(root / "tune"),
            verbose=0,
            callbacks=[Count()],
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    ).fit()
    told = meter.end(options.trials)
    files = [path for path in (root / "tune").rglob("*") if path.is_file()]
    return {
        **told,
        "store_files": len(files),
        "store_bytes": sum(path.stat().st_size for path in files),
    }


SIDES = {"ours": ours, "bare": bare}


def main(arguments: Sequence[str] | None = None) -> None:
    """Both sides in turn; JSON on standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--no-track", action="store_true", help="ours without MLflow")
    parser.add_argument("--only", choices=list(SIDES), help="one side")
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.side:
        with tempfile.TemporaryDirectory() as root:
            os.environ[SECONDS] = str(options.seconds)
            print(json.dumps(SIDES[options.side](options, Path(root))))  # noqa: T201 - its output
        return
    sides = [options.only] if options.only else list(SIDES)
    found = {side: _apart(side) for side in sides}
    ideal = options.trials * options.seconds / options.slots
    report = {
        "trials": options.trials,
        "slots": options.slots,
        "seconds_a_trial": options.seconds,
        "ideal_s": round(ideal, 1),
        **found,
        "over_ideal": {side: round(float(one["wall_s"]) / ideal, 3) for side, one in found.items()},
        "budget": {"wall_s": BUDGET_S, "of_trials": 10_000, "memory_bytes_a_trial": BUDGET_BYTES},
        **machine("ray", "mlflow", "pyarrow"),
    }
    print(json.dumps(report, indent=1))  # noqa: T201 - its output


def _apart(side: str) -> dict[str, float]:
    """One side in a process of its own."""
    command = [sys.executable, "-m", "bench.orchestration", *sys.argv[1:], "--side", side]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr[-3000:]}")
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    main()
