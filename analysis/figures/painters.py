"""Figures drawn by other processes, while this one goes on with its tables.

A figure takes a third of a second of one core, and one process draws one at a time. What is drawn
does not depend on who draws it: the same data give the same bytes.
"""

import gc
import os
import pickle
import queue
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

MOST = 4
"""More processes would wait for the tables that name their figures."""

_FEW = 16
"""So few figures are drawn here before another process has started to."""

Files = tuple[str, bytes]
"""A figure as SVG and as PNG."""


class Painters:
    """Some processes that draw; leave the block to end them.

    Args:
        paint: Draws one figure; a function of a module, as other processes look it up by name.
        expected: Figures to come; a few are drawn at once, in this process.
    """

    def __init__(self, paint: Callable[[Any], Files], expected: int) -> None:
        self._paint = paint
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._all: list[subprocess.Popen[bytes]] = []
        n = min(MOST, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else 1
        self._threads = ThreadPoolExecutor(n) if expected > _FEW and n > 1 else None
        if self._threads is not None:
            for _ in range(n):
                self._all.append(_start(paint.__module__))
                self._idle.put(self._all[-1])

    def draw(self, data: object) -> Future[Files]:
        """Have a figure drawn.

        Args:
            data: What `paint` takes; it travels by pickle.
        """
        if self._threads is not None:
            return self._threads.submit(self._elsewhere, data)
        done: Future[Files] = Future()
        done.set_result(self._paint(data))
        return done

    def _elsewhere(self, data: object) -> Files:
        """Send it to an idle process; where that has died, draw it here."""
        process = self._idle.get()
        try:
            assert process.stdin is not None  # noqa: S101 - we asked for pipes
            assert process.stdout is not None  # noqa: S101 - as above
            pickle.dump((self._paint, data), process.stdin)
            process.stdin.flush()
            drawn = pickle.load(process.stdout)  # noqa: S301 - our own process
        except (OSError, EOFError, pickle.UnpicklingError):
            return self._paint(data)
        finally:
            self._idle.put(process)
        if isinstance(drawn, Exception):
            raise drawn
        files: Files = drawn
        return files

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._threads is not None:
            for process in self._all if kind else ():
                process.kill()
            self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # it has died
                    pipe.close()  # type: ignore[union-attr]  # we asked for pipes
            process.wait()


def _start(module: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", f"import {module}; from {__name__} import serve; serve()"]
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(  # noqa: S603 - ourselves
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
    )


def serve() -> None:
    """Draw what comes in by standard input, until it ends."""
    gc.freeze()  # a figure makes ten thousand objects; to look through all there are takes a tenth
    gc.set_threshold(50_000, 20, 100)
    out: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed goes there
    while True:
        try:
            paint, data = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
        except EOFError:
            return
        try:
            found: object = paint(data)
        except Exception as error:  # noqa: BLE001 - the parent raises it
            found = error
        pickle.dump(found, out)
        out.flush()
