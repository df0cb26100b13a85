"""One background thread that shows committed trials in a window, and never stops the sweep."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar

from sweep.tracking_rows import Rows, TrialRows, by_trial, n_trials
from sweep.tracking_trial import Shown, shown

_log = logging.getLogger(__name__)

Result = TypeVar("Result")
Change = Literal["created", "completed", "unchanged"]


@dataclass(frozen=True, slots=True)
class Tracked:
    """How many trials' runs were made, brought up to date, found right, or not reached."""

    created: int = 0
    completed: int = 0
    unchanged: int = 0
    left: int = 0


class Window(Protocol):
    """Where trials are shown: one study in one MLflow, or a fake of it."""

    def write(self, trial: Shown) -> Change:
        """Make the run of `trial` say what `trial` says; writing it twice changes nothing."""

    def finish(self) -> None:
        """Say that the study's writer has gone."""

    def is_alive(self) -> bool:
        """Tell whether anybody answers."""


class Writer:
    """Takes rows at once, writes them in a thread of its own.

    A window that does not answer costs one warning; its rows wait, with longer and longer pauses
    between attempts, up to `most_waiting` trials. A trial that a window which does answer refuses
    three times is passed over. What is left at the end is for `sweep track`.
    """

    def __init__(
        self,
        study: str,
        open_window: Callable[[], Window],
        *,
        warn: Callable[[str], None] = _log.warning,
        explain: Callable[[Exception], str] = str,
        pauses_s: tuple[float, float] = (1.0, 60.0),
        most_waiting: int = 5000,
    ) -> None:
        self._study = study
        self._open = open_window
        self._warn = warn
        self._explain = explain
        self._pauses = pauses_s
        self._most_waiting = most_waiting
        self._window: Window | None = None
        self._has_warned = False
        self._waiting: deque[tuple[int, Rows]] = deque()
        self._n_waiting = 0
        self._submitted = 0
        self._counts: dict[Change, int] = {"created": 0, "completed": 0, "unchanged": 0}
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._abandoned = threading.Event()
        # Daemon: a server that hangs must not keep the process. A run cut short stays RUNNING in
        # MLflow and is completed by the next writer.
        self._thread = threading.Thread(target=self._run, name="mlflow-writer", daemon=True)
        self._thread.start()

    def submit(self, rows: Rows) -> None:
        """Hand over the rows of one trial or more; returns at once and never raises."""
        n = n_trials(rows)
        with self._changed:
            self._submitted += n
            if self._n_waiting < self._most_waiting and not self._closing.is_set():
                self._n_waiting += n
                self._waiting.append((n, rows))
                self._changed.notify()

    def close(self, timeout: float = 30.0) -> Tracked:
        """Write what still waits, for at most `timeout` seconds, and say how it went.

        With nobody answering, one last attempt is made. Closing twice is harmless.
        """
        with self._changed:
            self._closing.set()
            self._changed.notify()
        self._thread.join(timeout)
        self._abandoned.set()
        counts = dict(self._counts)
        return Tracked(**counts, left=self._submitted - sum(counts.values()))

    def _run(self) -> None:
        self._attempt(self._opened)
        while (rows := self._next()) is not None:
            self._attempt(partial(self._persist_all, rows))
        if not self._abandoned.is_set() and self._window is not None:
            self._attempt(self._window.finish)

    def _next(self) -> Rows | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing.is_set())
            if not self._waiting:
                return None
            n, rows = self._waiting.popleft()
            self._n_waiting -= n
            return rows

    def _persist_all(self, rows: Rows) -> None:
        for trial in by_trial(rows):
            if self._abandoned.is_set():
                return
            self._persist(trial)

    def _persist(self, trial: TrialRows) -> None:
        """Try until it is written, refused three times, or the writer closes on a dead window."""
        pause, longest = self._pauses
        refusals = 0
        while not self._abandoned.is_set():
            change = self._attempt(lambda: self._opened().write(shown(trial, self._study)))
            if change is not None:
                self._counts[change] += 1
                return
            if self._is_alive():
                refusals += 1
            elif self._closing.is_set():
                self._abandoned.set()
            if refusals == 3 or self._abandoned.is_set():  # noqa: PLR2004 - said in the docstring
                return
            self._closing.wait(pause)
            pause = min(2 * pause, longest)

    def _opened(self) -> Window:
        if self._window is None:
            self._window = self._open()
        return self._window

    def _is_alive(self) -> bool:
        try:
            return self._window is not None and self._window.is_alive()
        except Exception:  # noqa: BLE001 - any failure means no
            return False

    def _attempt(self, act: Callable[[], Result]) -> Result | None:
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - nothing here may reach the sweep
            self._say(error)
            return None

    def _say(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"MLflow: {self._explain(error)}. The sweep goes on without it; "
                f"`sweep track {self._study}` shows there what is missing."
            )
