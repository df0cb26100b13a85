"""What a run has to do: a schedule, the jobs behind it, and what should be seen of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from sweep.cache import cache_folder
from sweep.grid import PlannedTrial
from sweep.jobs import job_of, jobs_left
from sweep.opened import Opened
from sweep.progress import Board
from sweep.schedule import FixedSchedule
from sweep.search.mirror import Mirror
from sweep.search.schedule import SearchSchedule
from sweep.search.search import Search
from trainables.spec import Job, TrialSpec


class Work:
    """What is left of a study.

    Args:
        opened: The study, as it stands when the run begins.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._board: Board | None = None
        self._early: list[tuple[TrialSpec, int]] = []  # heard before there was a board
        self._mirror: Mirror | None = None
        self.trial_ids: set[str] = set(opened.trial_ids)
        """Trials of the study; grows as a search finds out which they are."""
        self.schedule: FixedSchedule | SearchSchedule
        if opened.layout is None or opened.results is None:
            jobs = jobs_left(opened)
            self._specs = [job.spec for job in jobs]
            self.schedule = FixedSchedule(jobs)
        else:
            self.schedule = SearchSchedule(
                opened.layout, opened.results, self._job, foresee=self._foresee, show=self._show
            )
            self._specs = list(self.schedule.foreseen())

    def show_on(self, board: Board) -> None:
        """Tell the board what is to come, now and whenever that changes."""
        self._board = board
        for spec in self._specs:
            board.foresee(spec)
        for spec, more in self._early:
            board.foresee(spec, more)
        self._early.clear()

    @contextmanager
    def mirrored(self, console: Console) -> Iterator[None]:
        """Show the searches in a journal of Optuna's while the block runs."""
        layout = self._opened.layout
        if layout is None or not layout.searches:
            yield
            return
        said = f"{journal_of(self._opened)}: "
        with Mirror(journal_of(self._opened), lambda text: console.print(said + text)) as mirror:
            self._mirror = mirror
            for search in layout.searches:
                mirror.show(search)
            yield

    def _show(self, search: Search) -> None:
        if self._mirror is not None:
            self._mirror.show(search)

    def _job(self, trial: PlannedTrial) -> Job | None:
        self.trial_ids.add(trial.trial_id)
        return job_of(self._opened, trial)

    def _foresee(self, spec: TrialSpec, more: int) -> None:
        if self._board is None:
            self._early.append((spec, more))
        else:
            self._board.foresee(spec, more)


def journal_of(opened: Opened) -> Path:
    """Where the searches of a study are shown: `optuna-dashboard FILE`."""
    if "://" in opened.store:
        return Path(cache_folder(), "optuna", f"{opened.study.name}.journal")
    return Path(opened.folder, "optuna.journal")
