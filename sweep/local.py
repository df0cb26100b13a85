"""Run trials on this machine: in this process (debugging), or on warm worker processes.

A worker process keeps torch, the encoder and tokenised data from trial to trial. When one dies, its
job counts as preempted and a fresh process takes the next.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from sweep.executor import (
    WORKER,
    Attempt,
    Interrupt,
    Watch,
    environment,
    failed,
    load_start,
    thread_limits,
)
from sweep.schedule import Schedule
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job

_CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
"""Signals that a program brings on itself; any other came from outside."""

_WHOLE = 1 + 1e-9
"""One GPU, and what adding up shares may leave."""

_WAIT_S = 0.5
"""Longest time between two looks at the interrupt."""


class LocalExecutor:
    """Runs jobs on this machine.

    Args:
        workers: 1 runs the jobs in this process, in order; more start that many processes.
        threads: CPU threads of each worker process, the same as in the jobs' workspaces.
        worker: The function that runs a job, as "module:object".
        logs: Folder for what worker processes print, one file each; None drops it.
        grace_s: Seconds that running steps get after Ctrl-C.
    """

    def __init__(
        self,
        workers: int = 1,
        *,
        threads: int = 1,
        worker: str = WORKER,
        logs: str | None = None,
        grace_s: float = 20.0,
    ) -> None:
        self.workers = workers
        self.threads = threads
        self.worker = worker
        self.logs = logs
        self.grace_s = grace_s

    def run(self, schedule: Schedule, watch: Watch) -> None:
        """Hand out jobs until the schedule is done; see `Executor.run`."""
        with Interrupt(self.grace_s, insists=self.workers == 1) as stop:
            if self.workers == 1:
                self._run_here(schedule, watch, stop)
            else:
                pool = _Pool(self, schedule, watch, stop)
                try:
                    pool.run()
                finally:
                    pool.close()
            if stop.is_set:
                raise KeyboardInterrupt

    def _run_here(self, schedule: Schedule, watch: Watch, stop: Interrupt) -> None:
        start = load_start(self.worker)
        while not stop.is_set and not schedule.is_done():
            job = schedule.next()
            if job is None:
                raise RuntimeError(WAITS_FOR_NOTHING)
            watch.started(job)
            attempt = Attempt(start, job)
            answer = attempt.step()
            while isinstance(answer, CurvePoint) and not stop.is_set:
                watch.epoch(job, answer)
                answer = attempt.step(go_on=schedule.report(job, answer))
            if isinstance(answer, CurvePoint):
                attempt.close()
            else:
                watch.finished(job, answer, retried=schedule.finished(job, answer))


WAITS_FOR_NOTHING = "the schedule hands out no job although none is running; it would wait for ever"


@dataclass(slots=True)
class _Seat:
    """One worker process, and the job it holds."""

    process: BaseProcess
    line: Connection
    log: str
    job: Job | None = None
    began: float = 0.0

    def tell(self, message: Job | bool | None) -> None:
        """Send to the process; if it has just died, the closed line says so to `_hear`."""
        with suppress(OSError):
            self.line.send(message)

    def death(self) -> Outcome:
        """What to say of a job whose process has ended."""
        job = self.job
        if job is None:
            raise RuntimeError("a worker process without a job has no outcome")
        self.process.join()
        code = self.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        is_crash = code >= 0 or -code in _CRASHES
        kind = "unknown" if is_crash else "preempted"
        text = f"worker process {self.process.pid} {how} during attempt {job.attempt}. Log: "
        return failed(job, kind, text + self.log, self.began)


class _Pool:
    """Worker processes that come when there is work, and are replaced when they die."""

    def __init__(
        self, owner: LocalExecutor, schedule: Schedule, watch: Watch, stop: Interrupt
    ) -> None:
        self._owner = owner
        self._schedule = schedule
        self._watch = watch
        self._stop = stop
        self._seats: list[_Seat] = []
        self._n_started = 0
        self._held: Job | None = None  # until its share of the GPU is free

    def run(self) -> None:
        """Keep every seat busy until the schedule is done or a stop was asked for."""
        while not self._schedule.is_done():
            if not self._stop.is_set:
                self._hand_out()
            busy = [seat for seat in self._seats if seat.job is not None]
            if not busy and not self._stop.is_set:
                raise RuntimeError(WAITS_FOR_NOTHING)
            if not busy or self._stop.is_late:
                return
            lines = {seat.line: seat for seat in busy}
            for line in wait(list(lines), timeout=_WAIT_S):
                self._hear(lines[line])  # type: ignore[index] # wait() gives back what it was given

    def close(self) -> None:
        """Let idle processes go and end those that still work."""
        for seat in self._seats:
            seat.line.close()
            if seat.job is not None:
                seat.process.kill()
        for seat in self._seats:
            seat.process.join(timeout=5)
            if seat.process.is_alive():
                seat.process.kill()

    def _hand_out(self) -> None:
        free = [seat for seat in self._seats if seat.job is None]
        while free or len(self._seats) < self._owner.workers:
            job = self._held or self._schedule.next()
            self._held = None
            if job is None:
                return
            if self._gpu_in_use() + job.workspace.gpus > _WHOLE:
                self._held = job
                return
            if free:
                seat = free.pop(0)
            else:
                seat = self._open_seat()
                self._seats.append(seat)
            seat.job, seat.began = job, time.monotonic()
            self._watch.started(job)
            seat.tell(job)

    def _gpu_in_use(self) -> float:
        """Shares of the GPU that running jobs have; all processes take the first one."""
        return sum(seat.job.workspace.gpus for seat in self._seats if seat.job is not None)

    def _hear(self, seat: _Seat) -> None:
        job = seat.job
        if job is None:
            return
        try:
            answer = seat.line.recv()
        except (EOFError, OSError):
            self._seats.remove(seat)
            self._end(seat, job, seat.death())
            return
        if isinstance(answer, CurvePoint):
            self._watch.epoch(job, answer)
            go_on = self._schedule.report(job, answer)
            seat.tell(None if self._stop.is_set else go_on)
        elif answer is None:  # it has left the job where it stood, as it was told
            seat.job = None
        else:
            self._end(seat, job, answer)

    def _end(self, seat: _Seat, job: Job, outcome: Outcome) -> None:
        seat.job = None
        self._watch.finished(job, outcome, retried=self._schedule.finished(job, outcome))

    def _open_seat(self) -> _Seat:
        self._n_started += 1
        log = os.devnull
        if self._owner.logs is not None:
            Path(self._owner.logs).mkdir(parents=True, exist_ok=True)
            log = str(Path(self._owner.logs, f"worker-{os.getpid()}-{self._n_started}.log"))
        # spawn: a forked copy of a process that has used torch or Arrow threads may hang.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, self._owner.worker, log), daemon=True
        )
        with environment(thread_limits(self._owner.threads)):
            process.start()
        theirs.close()
        return _Seat(process=process, line=ours, log=log)


def _serve(line: Connection, worker: str, log: str) -> None:
    """Life of a worker process: take a job, answer after every epoch, take the next."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; we are told
    _print_to(log)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    start = load_start(worker)
    for job in _jobs(line):
        attempt = Attempt(start, job)
        answer: CurvePoint | Outcome | None = attempt.step()
        while isinstance(answer, CurvePoint):
            line.send(answer)
            go_on = line.recv()
            if go_on is None:
                attempt.close()
                answer = None
            else:
                answer = attempt.step(go_on=go_on)
        line.send(answer)


def _jobs(line: Connection) -> Iterable[Job]:
    while True:
        try:
            yield line.recv()
        except EOFError:  # the driver has nothing more
            return


def _print_to(log: str) -> None:
    """Send everything this process prints to a file, libraries written in C included."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())


def _leave_with_parent() -> None:
    """End this process when the driver has died without a word (kill -9)."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
