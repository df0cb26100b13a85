"""Searches as Optuna studies in a journal file, for optuna-dashboard: a window, not the truth.

Written anew by each run from what is committed, by a thread of its own, and then kept up to date.
Whatever fails here costs one warning: no search reads what is written here.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sweep.search.results import Told
from sweep.search.sampler import distributions_of, frozen, state_of
from sweep.search.search import Search
from sweep.space import Point, Space

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _View:
    """A search at one moment."""

    search_id: str
    name: str
    space: Space
    tried: tuple[tuple[Point, str, Told | None, Mapping[int, float]], ...]


@dataclass(slots=True)
class _Shown:
    """What the journal says of one search."""

    study_id: int
    numbers: list[int] = field(default_factory=list)
    epochs: list[set[int]] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)


class Mirror:
    """Shows searches while they run: `with Mirror(...) as mirror`, then `mirror.show(search)`.

    Args:
        path: The journal file; one that is there is replaced.
        warn: Takes the one warning, if anything fails.
    """

    def __init__(self, path: Path, warn: Warn) -> None:
        self._path = path
        self._warn = warn
        self._views: queue.SimpleQueue[_View | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="optuna mirror", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._views.put(None)
        self._thread.join(timeout=30)

    def show(self, search: Search) -> None:
        """Take note of how a search stands; returns at once."""
        spec = search.template
        tried = tuple(
            (point, trial.trial_id, told, search.curve(trial))
            for trial, point, told in search.tried
        )
        name = f"{spec.task} {spec.source} {spec.ablation}"
        self._views.put(_View(search.search_id, name, search.rules.space, tried))

    def _work(self) -> None:
        try:
            writer = None
            while (view := self._views.get()) is not None:
                writer = writer or _Writer(self._path)
                writer.write(view)
        except Exception as error:  # noqa: BLE001 - a window must not end what it looks on
            self._warn(
                f"optuna-dashboard will not show the search ({type(error).__name__}: {error}); "
                "the search itself goes on."
            )


class _Writer:
    """The journal file."""

    def __init__(self, path: Path) -> None:
        import optuna
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._storage: Any = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
        self._shown: dict[str, _Shown] = {}
        self._maximise = [optuna.study.StudyDirection.MAXIMIZE]

    def write(self, view: _View) -> None:
        """Add what is new."""
        shown = self._shown.get(view.search_id)
        if shown is None:
            number = self._storage.create_new_study(self._maximise, view.name)
            self._storage.set_study_user_attr(number, "search", view.search_id)
            shown = self._shown[view.search_id] = _Shown(number)
        for k, (point, trial_id, told, curve) in enumerate(view.tried):
            if k in shown.ended:
                continue
            if k == len(shown.numbers):
                running = frozen(point, None, distributions_of(view.space))
                running.set_user_attr("trial_id", trial_id)
                number = self._storage.create_new_trial(shown.study_id, template_trial=running)
                shown.numbers.append(number)
                shown.epochs.append(set())
            number = shown.numbers[k]
            for epoch, value in sorted((curve if told is None else told.curve).items()):
                if epoch not in shown.epochs[k]:
                    shown.epochs[k].add(epoch)
                    self._storage.set_trial_intermediate_value(number, epoch, value)
            if told is not None:
                values = [told.value] if told.state == "done" else None
                self._storage.set_trial_state_values(number, state_of(told), values)
                shown.ended.add(k)
