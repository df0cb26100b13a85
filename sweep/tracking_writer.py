"""One background thread that shows committed trials in a window, and never stops the sweep."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar

from sweep.tracking_rows import Rows, TrialRows, by_trial, n_trials

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

    def write(self, rows: TrialRows) -> Change:
        """Make a trial's run say what its rows say; writing it twice changes nothing."""

    def finish(self) -> None:
        """Say that the study's writer has gone."""

    def is_alive(self) -> bool:
        """Tell whether anybody answers."""


class OpenableWindow(Window, Protocol):
    """A window that is opened on first use, or before."""

    def open(self) -> None:
        """Make it ready, so that the first trial waits for nothing."""

    def close(self) -> None:
        """Let go of it."""


class Writer:
    """Takes rows at once, writes them in a thread of its own.

    A window that does not answer costs one warning; its rows wait, with longer and longer pauses
    between attempts. A trial that a window which does answer refuses three times is passed over.
    What is left at the end is for `sweep track`.

    Rows take memory, ids do not: whoever has more than `room` keeps them to himself.
    """

    def __init__(
        self,
        study: str,
        window: OpenableWindow,
        *,
        warn: Callable[[str], None] = _log.warning,
        explain: Callable[[Exception], str] = str,
        pauses_s: tuple[float, float] = (1.0, 60.0),
        most_waiting: int = 300,
    ) -> None:
        self._study = study
        self._warn = warn
        self._explain = explain
        self._pauses = pauses_s
        self._most_waiting = most_waiting
        self._window = window
        self._has_warned = False
        self._is_silent = False
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

    @property
    def room(self) -> int:
        """Trials that may be handed over now."""
        with self._changed:
            return max(0, self._most_waiting - self._n_waiting)

    @property
    def behind(self) -> int:
        """Trials that were handed over and are not written."""
        return self._submitted - sum(self._counts.values())

    @property
    def is_silent(self) -> bool:
        """Whether nobody answered when it was tried last."""
        return self._is_silent

    def submit(self, rows: Rows) -> None:
        """Hand over the rows of one trial or more; returns at once and never raises."""
        n = n_trials(rows)
        with self._changed:
            self._submitted += n
            if not self._closing.is_set():
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
        self._is_silent = not self._attempt(self._is_opened)
        while (rows := self._next()) is not None:
            self._attempt(partial(self._persist_all, rows))
        if not self._is_silent and not self._abandoned.is_set():
            self._attempt(self._window.finish)
        self._attempt(self._window.close)

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
            change = self._attempt(lambda: self._window.write(trial))
            if change is not None:
                self._counts[change] += 1
                self._is_silent = False
                return
            self._is_silent = not self._is_alive()
            if not self._is_silent:
                refusals += 1
            elif self._closing.is_set():
                self._abandoned.set()
            if refusals == 3 or self._abandoned.is_set():  # noqa: PLR2004 - said in the docstring
                return
            self._closing.wait(pause)
            pause = min(2 * pause, longest)

    def _is_opened(self) -> bool:
        self._window.open()
        return True

    def _is_alive(self) -> bool:
        try:
            return self._window.is_alive()
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
