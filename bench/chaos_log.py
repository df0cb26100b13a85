"""What workers really did while they were being killed: a log beside the store, and its sums.

`start` runs jobs as `sweep.worker` does, and notes each optimiser step, checkpoint, resumption and
commit in one line of `<store>.log`. Lines this short are appended whole, whoever writes them.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

from sweep import worker
from sweep.storage import Store
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job

WORKER = "bench.chaos_log:start"

_noted: dict[str, Any] = {}


def start(job: Job) -> Generator[CurvePoint, bool, Outcome]:
    """Run a job and note what happens."""
    _watch_training()
    _noted.update(
        path=f"{job.store}.log", trial=job.trial_id, attempt=f"{os.getpid()}-{time.time_ns()}"
    )
    _note("begin")
    return (yield from worker.start(job))


def _note(what: str, **more: Any) -> None:  # noqa: ANN401 - JSON values
    line = {"what": what, "t": time.time(), "pid": os.getpid()} | more
    line |= {key: _noted[key] for key in ("trial", "attempt")}
    file = os.open(_noted["path"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


def _watch_training() -> None:
    """Put the notes around the parts of the product, once in a process."""
    if _noted:
        return
    from trainables.checkpoint import Checkpoints
    from trainables.training import Training

    _around(Training, "_step", lambda self, _: _note("step", step=self.progress.step))
    _around(Checkpoints, "restore", _note_restored)
    _around(Store, "publish_new", _note_commit)
    save, write = Checkpoints.save, Checkpoints._write_state  # noqa: SLF001 - an observer

    @wraps(save)
    def saved(self: Checkpoints, training: Training) -> None:
        save(self, training)
        _note("snapshot", step=training.progress.step)

    @wraps(write)
    def written(self: Checkpoints, name: str, *rest: Any) -> None:  # noqa: ANN401 - passed on
        write(self, name, *rest)
        _note("visible", step=int(name[len("step-") :].split(".", maxsplit=1)[0]))

    setattr(Checkpoints, "save", saved)  # noqa: B010 - mypy holds methods constant
    setattr(Checkpoints, "_write_state", written)  # noqa: B010 - as above


def _note_restored(_: object, found: object, training: Any = None) -> None:  # noqa: ANN401 - a Training
    if training is not None:
        _note("resume", step=training.progress.step if found else 0)


def _note_commit(_: object, is_new: object, path: str = "", *__: object) -> None:
    if path.startswith("commits/") and ".failed-" not in path:
        _note("commit", is_new=is_new)


def _around(kind: type, name: str, note: Callable[..., None]) -> None:
    """Call `note(self, result, *arguments)` after each call of a method."""
    method = getattr(kind, name)

    @wraps(method)
    def noted(self: object, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on
        result = method(self, *args, **kwargs)
        if name == "_step":
            note(self, result)
        else:
            note(self, result, *args)
        return result

    setattr(kind, name, noted)


@dataclass(slots=True)
class Attempt:
    """One attempt at a trial, as the log tells it: `ready` to train from step `first`, from 0."""

    trial: str
    began: float
    ready: float = 0.0
    first: int = 0
    steps: dict[int, float] = field(default_factory=dict)
    snapshots: dict[int, float] = field(default_factory=dict)
    visible: dict[int, float] = field(default_factory=dict)
    commits: list[bool] = field(default_factory=list)


def read_log(path: Path) -> list[Attempt]:
    """The attempts, in the order in which they began."""
    attempts: dict[str, Attempt] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        key, at = line["attempt"], line["t"]
        attempt = attempts.setdefault(key, Attempt(line["trial"], at))
        match line["what"]:
            case "resume":
                attempt.first, attempt.ready = line["step"], at
            case "step":
                attempt.steps[line["step"]] = at
            case "snapshot":
                attempt.snapshots[line["step"]] = at
            case "visible":
                attempt.visible[line["step"]] = at
            case "commit":
                attempt.commits.append(line["is_new"])
    return sorted(attempts.values(), key=lambda attempt: attempt.began)


@dataclass(frozen=True, slots=True)
class Loss:
    """What one broken attempt had trained in vain.

    Attributes:
        trial: Its trial.
        steps: Steps after the newest checkpoint that can be seen.
        seconds: From that checkpoint's snapshot (or the beginning) to the last step.
        allowed_s: The checkpoint interval, the slowest step, and the slowest write to the disk.
    """

    trial: str
    steps: int
    seconds: float
    allowed_s: float


def losses(attempts: list[Attempt], checkpoint_s: float) -> list[Loss]:
    """The loss of every attempt that did not come to its commit."""
    found = []
    for attempt in attempts:
        if attempt.commits or not attempt.steps:
            continue
        times = [attempt.ready, *attempt.steps.values()]
        slowest = max(after - before for before, after in pairwise(times))
        writes = [
            seen - attempt.snapshots[step]
            for step, seen in attempt.visible.items()
            if step in attempt.snapshots
        ]
        # A snapshot is a state after `step` steps; a write that was cut short is no checkpoint.
        kept = max(attempt.visible, default=attempt.first)
        since = attempt.snapshots.get(kept, attempt.ready)
        unfinished = max(attempt.snapshots, default=kept) > kept
        last = max(attempt.steps.values())
        write_s = max(writes, default=0.0)
        if unfinished:
            write_s = max(write_s, last - max(attempt.snapshots.values()))
        found.append(
            Loss(
                trial=attempt.trial,
                steps=sum(step >= kept for step in attempt.steps),
                seconds=last - since,
                allowed_s=checkpoint_s + slowest + write_s,
            )
        )
    return found


def recomputed(attempts: list[Attempt]) -> tuple[int, int]:
    """Optimiser steps that were taken, and how many of them had been taken before."""
    taken: dict[str, list[int]] = defaultdict(list)
    for attempt in attempts:
        taken[attempt.trial] += attempt.steps
    total = sum(len(steps) for steps in taken.values())
    return total, total - sum(len(set(steps)) for steps in taken.values())


def wrong_resumptions(attempts: list[Attempt]) -> list[str]:
    """Attempts that began before the newest checkpoint that was there when they began."""
    seen: dict[str, list[Attempt]] = defaultdict(list)
    found = []
    for attempt in attempts:
        there = [
            step
            for earlier in seen[attempt.trial]
            for step, at in earlier.visible.items()
            if at < attempt.began
        ]
        if attempt.steps and attempt.first < max(there, default=0):
            found.append(f"{attempt.trial} began at step {attempt.first}, not {max(there)}")
        seen[attempt.trial].append(attempt)
    return found
