"""What a running sweep shows: a live table on a terminal, a line an event elsewhere; on stderr.

`Board` holds the state and knows neither clock nor terminal. `table` and the lines are drawn
from it. The time left comes from measured durations, and is not shown before there are any.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sweep.executor import Watch
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job, TrialSpec

QUIET_S = 30.0
"""Off a terminal, seconds without a line after which an epoch's end is worth one."""


@dataclass(slots=True)
class _Running:
    job: Job
    since: float
    epoch: int = 0
    dev: float | None = None


@dataclass(slots=True)
class Row:
    """One line of the table: the jobs of one ablation.

    Attributes:
        name: The ablation; `pretrained` for jobs that train nothing.
        total: Jobs to do in this sweep.
        done: Of these, finished; pruned ones count.
        failed: Of these, given up.
        running: Of these, under way.
        epoch: Furthest running job's epoch, as "2/3"; empty when none runs.
        dev: Latest score on source dev, a fraction; None before the first.
    """

    name: str
    total: int = 0
    done: int = 0
    failed: int = 0
    running: int = 0
    epoch: str = ""
    dev: float | None = None


@dataclass(slots=True)
class _Measured:
    n: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Board:
    """State of a sweep as its watch hears it. Times are seconds of any one clock.

    Attributes:
        began: When the sweep began.
        already: Jobs that needed nothing, as their results were there.
        search_seed: Seed of jobs that only search, which have rows of their own; None for none.
    """

    began: float
    already: int = 0
    search_seed: int | None = None
    _rows: dict[str, Row] = field(default_factory=dict)
    _running: dict[str, _Running] = field(default_factory=dict)
    _at_once: int = 1
    _left: Counter[str] = field(default_factory=Counter)
    _measured: dict[str, _Measured] = field(default_factory=dict)

    def expect(self, jobs: Iterable[Job]) -> None:
        """Add jobs that are to be done."""
        for job in jobs:
            self.foresee(job.spec)

    def foresee(self, spec: TrialSpec, more: int = 1) -> None:
        """Add jobs of a kind that are to be done, or take some away."""
        self._row_of(spec).total += more
        self._left[spec.task] += more

    def started(self, job: Job, now: float) -> None:
        """A worker has taken up a job."""
        self._running[job.job_id] = _Running(job, now)
        self._at_once = len(self._running)  # as it is, not as it was asked for

    def epoch(self, job: Job, point: CurvePoint) -> None:
        """A job has trained one epoch more."""
        running = self._running[job.job_id]
        running.epoch, running.dev = point.epoch, point.dev_value
        self._row(job).dev = point.dev_value

    def finished(self, job: Job, outcome: Outcome, now: float, *, retried: bool) -> float | None:
        """An attempt has ended.

        Returns:
            The trial's last score on source dev, None if it gave none.
        """
        # A worker can be lost before it has said that it took up the job.
        running = self._running.pop(job.job_id, None) or _Running(job, now)
        if retried:
            return running.dev
        row = self._row(job)
        self._left[job.spec.task] -= 1
        if outcome.status == "failed":
            row.failed += 1
        else:
            row.done += 1
            measured = self._measured.setdefault(job.spec.task, _Measured())
            measured.n += 1
            measured.seconds += now - running.since
        return running.dev

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table's lines, in the order in which the jobs came."""
        for row in self._rows.values():
            row.running, row.epoch = 0, ""
        furthest: Counter[str] = Counter()
        for running in self._running.values():
            row = self._row(running.job)
            row.running += 1
            epochs = running.job.spec.hyper.epochs
            if epochs and running.epoch >= furthest[row.name]:
                furthest[row.name] = running.epoch
                row.epoch = f"{running.epoch}/{epochs}"
        return tuple(self._rows.values())

    @property
    def sum(self) -> Row:
        """All rows in one."""
        rows = self.rows
        return Row(
            name="all",
            total=sum(row.total for row in rows),
            done=sum(row.done for row in rows),
            failed=sum(row.failed for row in rows),
            running=sum(row.running for row in rows),
        )

    def left_s(self, now: float) -> float | None:
        """Seconds until the sweep is done, by the mean duration of the finished jobs of a task.

        Before one has finished, by the epochs of those that run. None as long as a task has jobs
        left and none has come to the end of an epoch.
        """
        means: dict[str, float] = {}
        for task, n_left in self._left.items():
            mean = self._mean(task, now)
            if n_left and mean is None:
                return None
            if mean is not None:
                means[task] = mean
        work = sum(means.get(task, 0.0) * n for task, n in self._left.items())
        rests = []
        for running in self._running.values():
            mean = means[running.job.spec.task]
            spent = min(now - running.since, mean)
            work -= spent
            rests.append(mean - spent)
        # No less than the one that takes longest, however many run at once.
        return max([work / self._at_once, *rests])

    def _mean(self, task: str, now: float) -> float | None:
        """Seconds of a task's job: measured, else reckoned from the epochs of running ones."""
        measured = self._measured.get(task)
        if measured is not None:
            return measured.seconds / measured.n
        reckoned = [
            (now - running.since) * running.job.spec.hyper.epochs / running.epoch
            for running in self._running.values()
            if running.job.spec.task == task and running.epoch
        ]
        return sum(reckoned) / len(reckoned) if reckoned else None

    def _row(self, job: Job) -> Row:
        return self._row_of(job.spec)

    def _row_of(self, spec: TrialSpec) -> Row:
        name = spec.ablation if spec.hyper.epochs else "pretrained"
        if spec.hyper.epochs and spec.seed == self.search_seed:
            name += " (search)"
        return self._rows.setdefault(name, Row(name))


def duration(seconds: float) -> str:
    """A duration for people, in its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def remaining(board: Board, now: float) -> str:
    """How long the sweep will still take, in words."""
    total = board.sum
    if total.done + total.failed == total.total:
        return "none left"
    left = board.left_s(now)
    return "time left: measuring" if left is None else f"about {duration(left)} left"


def table(board: Board, now: float, max_rows: int = 40) -> Group:
    """The live table, and below it how the sweep stands.

    With more than `max_rows`, those that are done give way.
    """
    rows = board.rows
    hidden = 0
    if len(rows) > max_rows:
        open_rows = [row for row in rows if row.done + row.failed < row.total][:max_rows]
        hidden, rows = len(rows) - len(open_rows), tuple(open_rows)
    total = board.sum
    caption = (
        f"{total.done}/{total.total} done, {total.running} running, {total.failed} failed; "
        f"{duration(now - board.began)} so far, {remaining(board, now)}"
    )
    if board.already:
        caption += f"; {board.already} were done before"
    if hidden:
        caption += f"; {hidden} more rows"
    drawn = Table()
    drawn.add_column("ablation")
    for name in ("done", "running", "failed", "epoch", "dev"):
        drawn.add_column(name, justify="right")
    for row in rows:
        drawn.add_row(
            Text(row.name, style="bold" if row.running else ""),
            f"{row.done}/{row.total}",
            str(row.running or ""),
            Text(str(row.failed or ""), style="red"),
            row.epoch,
            "" if row.dev is None else f"{row.dev:.3f}",
        )
    return Group(drawn, Text(caption))


def title(job: Job) -> str:
    """A job in a few words."""
    spec = job.spec
    words = [spec.task, spec.source, spec.ablation, f"seed {spec.seed}"] if spec.source else []
    what = " (search)" if job.phase == "search" else ""
    return f"{' '.join(words) or 'pretrained encoder'}{what} ({job.job_id[:8]})"


def ending(job: Job, outcome: Outcome, dev: float | None, *, retried: bool) -> str:
    """How an attempt ended, in one line; a rehearsal has only measured what the trial needs."""
    words = f"{outcome.status:<7} {title(job)}"
    if outcome.status == "failed":
        reason = " ".join(outcome.message.split())
        again = "; trying again" if retried else ""
        return f"{words} attempt {job.attempt}, {outcome.failure_kind}: {reason[:500]}{again}"
    if job.workspace.rehearse:
        took = f"{outcome.peak_memory / 1e9:.1f} GB of GPU memory at most"
        return f"measured {title(job)}: {took}, {duration(outcome.seconds)}"
    score = "" if dev is None else f", dev {dev:.3f}"
    return f"{words}{score}, {duration(outcome.seconds)}"


class LineWatch:
    """Writes a line when an attempt ends, and one now and then so that silence means trouble.

    Args:
        board: The state, kept by this watch.
        write: Takes one line.
        clock: Seconds.
    """

    def __init__(
        self,
        board: Board,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board = board
        self._write = write
        self._clock = clock
        self._last = float("-inf")

    def started(self, job: Job) -> None:
        """Say so if nothing was said for a while."""
        self._board.started(job, self._clock())
        self._say_if_quiet(f"started {title(job)}")

    def epoch(self, job: Job, point: CurvePoint) -> None:
        """Say so if nothing was said for a while."""
        self._board.epoch(job, point)
        of = f"epoch {point.epoch}/{job.spec.hyper.epochs}, dev {point.dev_value:.3f}"
        self._say_if_quiet(f"running {title(job)}: {of}")

    def finished(self, job: Job, outcome: Outcome, *, retried: bool) -> None:
        """Say how it ended, and how much is left."""
        now = self._clock()
        dev = self._board.finished(job, outcome, now, retried=retried)
        self._say(f"{ending(job, outcome, dev, retried=retried)}; {remaining(self._board, now)}")

    def _say_if_quiet(self, text: str) -> None:
        if self._clock() - self._last >= QUIET_S:
            self._say(text)

    def _say(self, text: str) -> None:
        total = self._board.sum
        self._last = self._clock()
        self._write(f"[{total.done + total.failed}/{total.total}] {text}")


class TableWatch:
    """Keeps a table on the terminal up to date; failures stay above it.

    Args:
        board: The state, kept by this watch.
        console: The terminal.
        clock: Seconds.
    """

    def __init__(
        self, board: Board, console: Console, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._board = board
        self._console = console
        self._clock = clock
        # rich draws from a thread of its own.
        self._lock = threading.Lock()

    def draw(self) -> Group:
        """The table as it is now."""
        with self._lock:
            return table(self._board, self._clock(), max_rows=max(3, self._console.height - 8))

    def started(self, job: Job) -> None:
        """Take note."""
        with self._lock:
            self._board.started(job, self._clock())

    def epoch(self, job: Job, point: CurvePoint) -> None:
        """Take note."""
        with self._lock:
            self._board.epoch(job, point)

    def finished(self, job: Job, outcome: Outcome, *, retried: bool) -> None:
        """Take note, and leave a line about a failure."""
        with self._lock:
            dev = self._board.finished(job, outcome, self._clock(), retried=retried)
        if outcome.status == "failed":
            line = ending(job, outcome, dev, retried=retried)
            self._console.print(Text(line, style="yellow" if retried else "red"))


@contextmanager
def shown(board: Board, console: Console) -> Iterator[Watch]:
    """The watch that suits where `console` writes to."""
    if not console.is_interactive or console.is_dumb_terminal:
        yield LineWatch(board, lambda line: console.print(Text(line), soft_wrap=True))
        return
    watch = TableWatch(board, console)
    with Live(get_renderable=watch.draw, console=console, refresh_per_second=2):
        yield watch
