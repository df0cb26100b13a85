"""What every executor is: a way to run a schedule's jobs, one attempt each time it is asked.

An executor owns processes and nothing else. It does not retry (the schedule does), does not store
(the worker commits its own rows) and does not print (the watch may).
"""

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Protocol, Self, cast

from sweep.schedule import Schedule
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job

WORKER = "sweep.worker:start"
"""The function that runs a job, as "module:object"."""

Start = Callable[[Job], Generator[CurvePoint, bool, Outcome]]
"""Runs a job: yields after every epoch, is sent whether to go on, returns how it ended."""


class ClusterError(Exception):
    """A cluster cannot be joined: says which, why, and how to mend it."""


class Watch(Protocol):
    """Hears what happens while it happens. Called from the executor's thread."""

    def started(self, job: Job) -> None:
        """A worker has taken up the job."""
        ...

    def epoch(self, job: Job, point: CurvePoint) -> None:
        """The job has trained one epoch more."""
        ...

    def finished(self, job: Job, outcome: Outcome, *, retried: bool) -> None:
        """The attempt has ended; `retried` when the schedule will hand the job out again."""
        ...


class Executor(Protocol):
    """Runs all jobs of a schedule."""

    def run(self, schedule: Schedule, watch: Watch) -> None:
        """Hand out jobs until the schedule is done.

        A job that fails, and a worker that dies, are outcomes and end nothing else.

        Raises:
            KeyboardInterrupt: after SIGINT or SIGTERM, when the workers have stopped.
        """
        ...


def load_start(worker: str) -> Start:
    """Import the function named "module:object"."""
    module, _, attribute = worker.partition(":")
    return cast("Start", getattr(importlib.import_module(module), attribute))


class Attempt:
    """One attempt at a job, advanced one epoch at a time.

    Nothing a job raises leaves it as an exception, as one job's failure must not end a sweep:
    errors that the worker function did not turn into an outcome itself become one here.
    """

    def __init__(self, start: Start, job: Job) -> None:
        self._job = job
        self._start = start
        self._steps: Generator[CurvePoint, bool, Outcome] | None = None
        self._began = time.monotonic()

    def step(self, *, go_on: bool = True) -> CurvePoint | Outcome:
        """Train to the end of the next epoch, or to the end of the job.

        Args:
            go_on: The answer to the epoch before; False prunes. Unused on the first step.
        """
        try:
            if self._steps is None:
                self._steps = self._start(self._job)
                return next(self._steps)
            return self._steps.send(go_on)
        except StopIteration as end:
            return cast("Outcome", end.value)
        except Exception as error:  # noqa: BLE001 - see the class: whatever it is, it is an outcome
            return failed(self._job, "unknown", f"{type(error).__name__}: {error}", self._began)

    def close(self) -> None:
        """Leave the job where it stands; its last checkpoint stays."""
        if self._steps is not None:
            self._steps.close()


def failed(job: Job, kind: str, message: str, began: float) -> Outcome:
    """The outcome of an attempt that could not speak for itself.

    Args:
        job: What was attempted.
        kind: `user`, `out-of-memory`, `preempted` or `unknown`.
        message: For people.
        began: `time.monotonic()` at its start.
    """
    return Outcome(
        job_id=job.job_id,
        trial_id=job.trial_id,
        status="failed",
        failure_kind=kind,
        message=message,
        seconds=time.monotonic() - began,
    )


class Interrupt:
    """Ctrl-C (SIGINT) or SIGTERM during a sweep: the first asks, the second insists.

    After the first signal `is_set` is true and running steps get `grace_s` seconds to reach the
    end of an epoch or of a commit; then `is_late` is true. The second signal raises
    KeyboardInterrupt where the program stands. Outside the main thread, signals stay as they are.

    Args:
        grace_s: Seconds between the first signal and `is_late`.
        insists: Send the second signal ourselves when the time is over, for a program that
            cannot look at `is_late` because it runs the trial itself.
    """

    def __init__(self, grace_s: float, *, insists: bool = False) -> None:
        self._grace_s = grace_s
        self._insists = insists
        self._deadline: float | None = None
        self._timer: threading.Timer | None = None
        self._old: dict[int, object] = {}

    @property
    def is_set(self) -> bool:
        """A stop was asked for."""
        return self._deadline is not None

    @property
    def is_late(self) -> bool:
        """A stop was asked for, and the time to stop gently is over."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def __enter__(self) -> Self:
        self.hold()
        return self

    def hold(self) -> None:
        """Take the signals, again if need be: Ray's start takes SIGTERM, and aborts upon it."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                old = signal.signal(number, self._handle)
                self._old.setdefault(number, old)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for number, old in self._old.items():
            signal.signal(number, cast("signal.Handlers", old))

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self._deadline = time.monotonic() + self._grace_s
        # Straight to the descriptor: the interrupted code may hold the locks of sys.stderr.
        os.write(
            2,
            f"\nStopping: running steps have {self._grace_s:.0f} s to finish. "
            "Press Ctrl-C again to stop at once.\n".encode(),
        )
        if self._insists:
            self._timer = threading.Timer(self._grace_s, os.kill, (os.getpid(), signal.SIGINT))
            self._timer.daemon = True
            self._timer.start()


def thread_limits(threads: int) -> dict[str, str]:
    """Environment that holds every numerical library of a new process to `threads` threads.

    Libraries read it when they are loaded. Each executor starts its workers with it, as some
    sums come out differently in the last bit under another thread count.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    # tokenizers would start its own pool, and warns when a process with one is forked.
    return {name: str(threads) for name in names} | {"TOKENIZERS_PARALLELISM": "false"}


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a while, for child processes and libraries that read them."""
    old = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
