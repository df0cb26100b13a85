"""A window kept in a process of its own, so that writing to it takes nothing from the sweep.

MLflow's client needs a tenth of a second of one core for a trial; in the driver's own process it
was half of all that the driver of a large sweep did.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from analysis.apart import Apart
from sweep.tracking_rows import TrialRows
from sweep.tracking_writer import Change, Window

_NICE = 10
"""Trials go first where all cores are taken."""


class WindowApart:
    """Does what a window does, elsewhere. A process that has died is followed by another one.

    Args:
        open_window: Opens the window over there; a function of a module.
        arguments: What it takes.

    Every call raises OSError where nobody answers; it says why.
    """

    def __init__(self, open_window: Callable[..., Window], *arguments: object) -> None:
        self._open = open_window
        self._arguments = arguments
        self._apart: Apart | None = None
        self._is_open = False

    def open(self) -> None:
        """Open the window over there, if it is not."""
        self._ready()

    def write(self, rows: TrialRows) -> Change:
        """See `Window.write`."""
        change: Change = self._ready().call(_write, parcel(rows))
        return change

    def finish(self) -> None:
        """See `Window.finish`."""
        self._ready().call(_finish)

    def is_alive(self) -> bool:
        """See `Window.is_alive`."""
        return bool(self._ready().call(_is_alive))

    def close(self) -> None:
        """End the process, once it has done what it is at."""
        if self._apart is not None:
            self._apart.close()

    def _ready(self) -> Apart:
        """The process, with the window open in it."""
        if self._apart is None or self._apart.is_gone:
            self.close()
            self._apart = Apart(self._open.__module__, nice=_NICE)
            self._is_open = False
        if not self._is_open:
            self._apart.call(_open, self._open, self._arguments)
            self._is_open = True
        return self._apart


def parcel(rows: TrialRows) -> TrialRows:
    """The same rows, in memory of their own: a slice travels with all that it is cut from."""
    places = pa.array(range(len(rows.similarity)), pa.int64())
    return replace(rows, similarity=rows.similarity.take(places))


# What runs over there

_windows: list[Window] = []
"""The one that was opened."""


def _open(open_window: Callable[..., Window], arguments: tuple[object, ...]) -> None:
    with _in_words():
        _windows.append(open_window(*arguments))


def _write(rows: TrialRows) -> Change:
    with _in_words():
        return _windows[0].write(rows)


def _finish() -> None:
    with _in_words():
        _windows[0].finish()


def _is_alive() -> bool:
    return _windows[0].is_alive()


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise what can be read without the class of the error: MLflow's own would load MLflow."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the writer decides what becomes of it
        raise OSError(str(error) or type(error).__name__) from None
