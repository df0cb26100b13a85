"""What a driver does beside running trials: shows what was committed, and keeps the store small.

It runs in a thread of its own, as a slow disk or network must not hold up the trials. Whatever
fails here costs a warning: the committed rows are the truth, and the next run or `sweep track`
tidies up.
"""

import threading
import time
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import islice
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console

from analysis.rowfiles import TableError
from analysis.tables import Tables
from sweep.compact import compact
from sweep.ledger import Ledger
from sweep.lock import DriverLock, StoreLockedError
from sweep.storage import StorageError, Store

PERIOD_S = 15.0
"""Seconds between two looks at what was committed."""

WAIT_S = 30.0
"""Seconds that a run waits at its end for MLflow."""

_PACE_S = 3.0
"""Seconds after which the tracker's pace is known, and"""

_HOPELESS = 2.0
"""how many times longer it may seem to need than it has before nobody waits for it."""

_SHORT_S = 0.2

MANY = 500
"""Commits after which they are taken into tables."""


class Shows(Protocol):
    """A window on committed rows (`sweep.tracking.Tracker`)."""

    @property
    def room(self) -> int:
        """Trials that it would take now."""
        ...

    @property
    def behind(self) -> int:
        """Trials that it has taken and not shown."""
        ...

    @property
    def is_silent(self) -> bool:
        """Whether nobody answers there at the moment."""
        ...

    def submit(self, rows: Tables) -> None:
        """Take the rows of some trials; returns at once."""
        ...

    def close(self, timeout: float = 30.0) -> object:
        """Write what waits."""
        ...


class Housekeeper:
    """Looks after a store while trials run: `with Housekeeper(...):`, then `finish()`.

    The ledger is its own until the block is left, but for questions that look into its sets.

    Args:
        store: The store.
        ledger: Its ledger.
        lock: The driver's lock on it.
        tracker: Where committed trials are shown; None for nowhere.
        trial_ids: Trials of the study; others' commits are not shown. More may be added to it.
        console: Where warnings go.
    """

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        lock: DriverLock,
        *,
        tracker: Shows | None,
        trial_ids: AbstractSet[str],
        console: Console,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._lock = lock
        self._tracker = tracker
        self._trial_ids = trial_ids
        self._console = console
        self._n_loose = 0
        self._unshown: dict[str, None] = {}  # trials in the order they were committed
        self._said: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="housekeeping", daemon=True)
        self.untracked = 0
        """Trials that the tracker was given and did not write, once finished."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def finish(self) -> None:
        """Show and compact what is left, and wait a little for the tracker if that will do."""
        self._look()
        self._compact()
        if self._tracker is None:
            return
        began = time.monotonic()
        first = self._tracker.behind + len(self._unshown)
        left_s = WAIT_S
        while self._unshown and not self._tracker.is_silent and left_s > 0:
            time.sleep(_SHORT_S)
            self._show()
            passed = time.monotonic() - began
            left_s = WAIT_S - passed
            behind = self._tracker.behind + len(self._unshown)
            if passed > _PACE_S and behind * passed > _HOPELESS * left_s * (first - behind) > 0:
                left_s = 0.0  # `sweep track` is asked for in any case: no need to wait for a part
        closed = self._tracker.close(max(_SHORT_S, left_s))
        self.untracked += getattr(closed, "left", 0) + len(self._unshown)

    def _work(self) -> None:
        # What earlier runs committed may have died before it was shown.
        self._remember(self._ledger.trial_ids())
        self._show()
        while not self._stop.wait(PERIOD_S):
            self._look()
            if self._n_loose >= MANY:
                self._compact()

    def _look(self) -> None:
        try:
            new = self._ledger.refresh()
        except (TableError, OSError) as error:
            self._warn(f"the store could not be read just now: {error}")
            return
        self._n_loose += len(new)
        self._remember(trial_of(commit_id) for commit_id in new)
        self._show()

    def _remember(self, trial_ids: Iterable[str]) -> None:
        if self._tracker is not None:
            self._unshown |= {trial: None for trial in trial_ids if trial in self._trial_ids}

    def _show(self) -> None:
        """Hand over as many trials as are taken; the others wait as ids, which cost no memory."""
        if self._tracker is None or not self._unshown:
            return
        batch = list(islice(self._unshown, self._tracker.room))
        try:
            if batch:
                self._tracker.submit(self._ledger.tables(batch))
        except Exception as error:  # noqa: BLE001 - a window must not end what it looks on
            self.untracked += len(batch)
            self._warn(f"MLflow is not up to date ({error}); `sweep track` completes it later")
        for trial in batch:
            del self._unshown[trial]

    def _compact(self) -> None:
        try:
            compact(self._store, check=self._lock.check)
        except (StorageError, StoreLockedError, TableError, OSError) as error:
            self._warn(f"results are committed, but not compacted: {error}")
        else:
            self._n_loose = 0

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._console.print(f"Warning: {text}", soft_wrap=True, markup=False)


def trial_of(commit_id: str) -> str:
    """Trial id of a commit: what stands before a further request and a failed attempt."""
    return commit_id.partition(".")[0].partition("+")[0]
