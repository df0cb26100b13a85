"""A virtual clock that jumps from one event to the next."""

import heapq
from collections.abc import Callable


class Agenda:
    """Events in the order of their time; equal times in the order in which they were planned."""

    def __init__(self) -> None:
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._n = 0
        self.now = 0.0
        """Seconds since the start."""

    def __bool__(self) -> bool:
        return bool(self._events)

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        """Plan an event, so many seconds from now.

        Raises:
            ValueError: it would be in the past.
        """
        if not seconds >= 0:
            raise ValueError(f"an event {seconds} s from now is in the past")
        self._n += 1
        heapq.heappush(self._events, (self.now + seconds, self._n, happens))

    def step(self) -> None:
        """Jump to the next time at which something happens, and let all of that time happen."""
        self.now = self._events[0][0]
        while self._events and self._events[0][0] == self.now:
            heapq.heappop(self._events)[2]()
