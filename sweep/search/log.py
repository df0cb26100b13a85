"""Which points a search has asked for: written down before they are handed out.

One small file a search, `searches/<id>.json`, replaced in one step. It lies beside the studies, as
a search is known by what decides it: two studies that search one cell in one way share its points.
"""

import json
from collections.abc import Sequence
from typing import Protocol

from analysis.rowfiles import TableError
from sweep.space import Point
from sweep.storage import Store

FOLDER = "searches"


class Log(Protocol):
    """Keeps the points of searches, in the order in which they were asked for."""

    def read(self, search_id: str) -> tuple[Point, ...]:
        """All points so far."""
        ...

    def write(self, search_id: str, points: Sequence[Point]) -> None:
        """Keep these points: those of before, and new ones."""
        ...


class StoreLog:
    """A log in a result store. Only the driver that holds the store's lock writes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, search_id: str) -> tuple[Point, ...]:
        """See `Log`.

        Raises:
            TableError: the file is not what we write.
        """
        path = f"{FOLDER}/{search_id}.json"
        try:
            text = self._store.read(path)
        except FileNotFoundError:
            return ()
        try:
            return tuple(dict(point) for point in json.loads(text)["points"])
        except (ValueError, KeyError, TypeError) as error:
            raise TableError(
                f"{self._store.where}/{path}: not a list of points ({error}). Delete it: the "
                "search then asks anew, and what it knows of points tried before costs nothing."
            ) from error

    def write(self, search_id: str, points: Sequence[Point]) -> None:
        """See `Log`.

        Raises:
            StorageError: the store cannot be written.
        """
        content = {"version": 1, "search": search_id, "points": [dict(p) for p in points]}
        text = json.dumps(content, indent=1)
        self._store.publish(f"{FOLDER}/{search_id}.json", text.encode())


class MemoryLog:
    """A log that ends with the process: for rehearsals."""

    def __init__(self) -> None:
        self.points: dict[str, tuple[Point, ...]] = {}
        """By search."""

    def read(self, search_id: str) -> tuple[Point, ...]:
        """See `Log`."""
        return self.points.get(search_id, ())

    def write(self, search_id: str, points: Sequence[Point]) -> None:
        """See `Log`."""
        self.points[search_id] = tuple(points)
