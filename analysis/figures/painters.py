"""Figures drawn by other processes, while this one goes on with its tables.

A figure takes a third of a second of one core, and one process draws one at a time. What is drawn
does not depend on who draws it: the same data give the same bytes.
"""

import os
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from analysis.apart import Apart, GoneError

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
        self._idle: queue.SimpleQueue[Apart] = queue.SimpleQueue()
        self._all: list[Apart] = []
        n = min(MOST, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else 1
        self._threads = ThreadPoolExecutor(n) if expected > _FEW and n > 1 else None
        if self._threads is not None:
            self._all = [Apart(paint.__module__) for _ in range(n)]
            for process in self._all:
                self._idle.put(process)

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
            files: Files = process.call(self._paint, data)
        except GoneError:
            return self._paint(data)
        finally:
            self._idle.put(process)
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
            process.close()
