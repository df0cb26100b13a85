"""What a running sweep shows, drawn from a made-up course of events."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sweep.progress import Board, LineWatch, TableWatch, duration, shown, table
from sweep.worker import Outcome
from trainables.spec import Job

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))
import executor_fakes as fakes


def job(name: str, ablation: str = "ref", task: str = "upos") -> Job:
    """A job of three epochs."""
    made = fakes.job("store", name, epochs=3)
    return replace(made, spec=replace(made.spec, ablation=ablation, task=task))


def probe(name: str = "probe") -> Job:
    """A job that trains nothing."""
    made = fakes.job("store", name, epochs=0)
    return replace(made, spec=replace(made.spec, task="probe", source=""))


def ended(made: Job, status: str = "done", kind: str | None = None, message: str = "") -> Outcome:
    """How an attempt ended, after 100 s."""
    return Outcome(
        job_id=made.job_id,
        trial_id=made.trial_id,
        status=status,
        failure_kind=kind,
        message=message,
        seconds=100.0,
    )


def board(*jobs: Job) -> Board:
    """A board that expects these jobs, begun at 0 s."""
    made = Board(began=0.0)
    made.expect(jobs)
    return made


def drawn(made: Board, now: float = 0.0, **kwargs: int) -> str:
    """The table as text."""
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(table(made, now, **kwargs))
    return console.file.getvalue()  # type: ignore[attr-defined] # it is a StringIO


def test_counts_by_ablation() -> None:
    """Each ablation's row counts its own jobs; the sum counts all."""
    a, b, c = job("a"), job("b", "reinit:1-2"), job("c", "reinit:1-2")
    made = board(a, b, c, probe())
    made.started(a, 0)
    made.finished(a, ended(a), 10, retried=False)
    made.started(b, 10)
    made.epoch(b, fakes.point(2))
    made.started(c, 10)
    made.finished(c, ended(c, "failed", "user"), 20, retried=False)
    ref, reinit, pretrained = made.rows
    assert (ref.name, ref.done, ref.total, ref.running) == ("ref", 1, 1, 0)
    assert (reinit.name, reinit.done, reinit.failed, reinit.running) == ("reinit:1-2", 0, 1, 1)
    assert reinit.epoch == "2/3"
    assert reinit.dev == pytest.approx(2 / 3)
    assert (pretrained.name, pretrained.total) == ("pretrained", 1)
    assert (made.sum.done, made.sum.failed, made.sum.running, made.sum.total) == (1, 1, 1, 4)


def test_a_retried_attempt_is_neither_done_nor_failed() -> None:
    """A job that will run again is left to do, whatever happened to its attempt."""
    a = job("a")
    made = board(a)
    made.started(a, 0)
    made.finished(a, ended(a, "failed", "preempted"), 5, retried=True)
    assert (made.sum.done, made.sum.failed, made.sum.running) == (0, 0, 0)
    made.started(a, 5)
    made.finished(a, ended(a), 15, retried=False)
    assert made.sum.done == 1


def test_no_time_left_before_anything_was_measured() -> None:
    """The time left is unknown until a job of each task has finished."""
    a, b, p = job("a"), job("b"), probe()
    made = board(p, a, b)
    made.started(p, 0)
    made.finished(p, ended(p), 5, retried=False)
    made.started(a, 5)
    assert made.left_s(10) is None
    assert "measuring" in drawn(made, 10)
    made.finished(a, ended(a), 105, retried=False)
    assert made.left_s(105) == pytest.approx(100)


def test_time_left_counts_work_over_what_runs_at_once() -> None:
    """Five jobs of 100 s, two of them running for 50 s: 400 s of work, 200 s to wait."""
    jobs = [job(name) for name in "abcdef"]
    made = board(*jobs)
    made.started(jobs[0], 0)
    made.finished(jobs[0], ended(jobs[0]), 100, retried=False)
    made.started(jobs[1], 100)
    made.started(jobs[2], 100)
    assert made.left_s(150) == pytest.approx((5 * 100 - 2 * 50) / 2)


def test_time_left_is_not_less_than_the_longest_rest() -> None:
    """Of two that ran together the later one alone decides: 90 s, not half of it."""
    a, b, c = job("a"), job("b"), job("c")
    made = board(a, b, c)
    made.started(a, 0)
    made.finished(a, ended(a), 100, retried=False)
    made.started(b, 100)
    made.started(c, 190)
    made.finished(b, ended(b), 200, retried=False)
    assert made.left_s(200) == pytest.approx(90)


def test_a_failed_job_measures_nothing() -> None:
    """A job that failed after a second does not make the rest look short."""
    a, b = job("a"), job("b")
    made = board(a, b)
    made.started(a, 0)
    made.finished(a, ended(a, "failed", "user"), 1, retried=False)
    assert made.left_s(1) is None


def test_nothing_left_takes_no_time() -> None:
    """A finished sweep has 0 s left."""
    a = job("a")
    made = board(a)
    made.started(a, 0)
    made.finished(a, ended(a), 100, retried=False)
    assert made.left_s(100) == 0


def test_the_table_says_what_a_researcher_asks() -> None:
    """The table shows counts, epoch, score, time so far and what was known before."""
    a, b = job("a"), job("b")
    made = board(a, b)
    made.already = 7
    made.started(a, 0)
    made.finished(a, ended(a), 100, retried=False)
    made.started(b, 100)
    made.epoch(b, fakes.point(1))
    text = drawn(made, 160)
    assert "1/2" in text
    assert "1/3" in text
    assert "0.500" in text
    assert "2 min 40 s so far, about 40 s left" in text
    assert "7 were done before" in text


def test_a_long_table_shows_what_is_open() -> None:
    """Where the terminal is too small, finished rows give way."""
    jobs = [job(f"j{i}", f"reinit:{i}") for i in range(1, 6)]
    made = board(*jobs)
    made.started(jobs[0], 0)
    made.finished(jobs[0], ended(jobs[0]), 1, retried=False)
    text = drawn(made, 1, max_rows=4)
    assert "reinit:1" not in text
    assert "reinit:5" in text
    assert "1 more rows" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (11400, "3 h 10 min"),
        (2e5, "2 d 7 h"),
    ],
)
def test_durations_are_said_in_two_units(seconds: float, text: str) -> None:
    """A duration names its two largest units."""
    assert duration(seconds) == text


def test_lines_say_each_end_once_and_epochs_now_and_then() -> None:
    """Off a terminal, ends are always said and epochs only after 30 s without a line."""
    a, b = job("aaaa"), job("bbbb")
    now = [0.0]
    lines: list[str] = []
    watch = LineWatch(board(a, b), lines.append, clock=lambda: now[0])
    watch.started(a)  # the first sign of life
    for now[0], epoch in [(10, 1), (40, 2), (50, 3)]:
        watch.epoch(a, fakes.point(epoch))
    now[0] = 100
    watch.finished(a, ended(a), retried=False)
    watch.started(b)
    watch.finished(b, ended(b, "failed", "unknown", "boom\nat line 2"), retried=True)
    assert lines == [
        "[0/2] started upos en ref seed 1 (aaaa)",
        "[0/2] running upos en ref seed 1 (aaaa): epoch 2/3, dev 0.667",
        "[1/2] done    upos en ref seed 1 (aaaa), dev 0.750, 1 min 40 s; about 1 min 40 s left",
        (
            "[1/2] failed  upos en ref seed 1 (bbbb) attempt 1, unknown: boom at line 2; "
            "trying again; about 1 min 40 s left"
        ),
    ]


def test_a_rehearsal_is_not_called_done() -> None:
    """It has only measured what its kind of trial needs of a GPU; the trial is still to come."""
    lines: list[str] = []
    a = job("a")
    alone = replace(a, workspace=replace(a.workspace, rehearse=True))
    watch = LineWatch(board(a), lines.append, clock=lambda: 0.0)
    watch.started(alone)
    watch.finished(alone, replace(ended(alone), peak_memory=2_340_000_000), retried=True)
    assert lines[-1] == (
        "[0/1] measured upos en ref seed 1 (a): 2.3 GB of GPU memory at most, 1 min 40 s; "
        "time left: measuring"
    )


def test_a_terminal_gets_a_table_and_failures_above_it() -> None:
    """On a terminal the table is drawn, and a failure leaves a line."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=30)
    a = job("a")
    with shown(board(a), console) as watch:
        assert isinstance(watch, TableWatch)
        watch.started(a)
        watch.epoch(a, fakes.point(1))
        watch.finished(a, ended(a, "failed", "user", "no such file"), retried=False)
    text = console.file.getvalue()  # type: ignore[attr-defined] # it is a StringIO
    assert "no such file" in text
    assert "ablation" in text


def test_no_terminal_gets_lines_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal nothing but plain text is written."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    console = Console(file=io.StringIO(), width=20)
    a = job("a")
    with shown(board(a), console) as watch:
        assert isinstance(watch, LineWatch)
        watch.started(a)
        watch.finished(a, ended(a, "failed", "user", "[red]no such file"), retried=False)
    text = console.file.getvalue()  # type: ignore[attr-defined] # it is a StringIO
    assert "\x1b" not in text
    assert text.splitlines()[1].endswith("user: [red]no such file; none left")


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR set, the terminal's table has no colour codes."""
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    a = job("a")
    with shown(board(a), console) as watch:
        watch.started(a)
        watch.finished(a, ended(a, "failed", "user", "bad"), retried=False)
    assert "\x1b[31m" not in console.file.getvalue()  # type: ignore[attr-defined] # a StringIO


def test_time_left_is_reckoned_from_epochs_before_a_job_has_finished() -> None:
    """One of three epochs after 100 s: 300 s a job, so two jobs in turn want 500 s more."""
    a, b = job("a"), job("b")
    made = board(a, b)
    made.started(a, 0)
    assert made.left_s(50) is None
    made.epoch(a, fakes.point(1))
    assert made.left_s(100) == pytest.approx(500)


def test_trials_that_search_have_rows_of_their_own() -> None:
    """With a search going on, its trials of an ablation are not counted among the reported ones."""
    found, reported = job("a"), job("b")
    found = replace(found, phase="search", spec=replace(found.spec, seed=0))
    reported = replace(reported, spec=replace(reported.spec, seed=1))
    made = Board(began=0.0, search_seed=0)
    made.expect([found, reported])
    assert [(row.name, row.total) for row in made.rows] == [("ref (search)", 1), ("ref", 1)]
    made.started(found, 0)
    assert made.finished(found, ended(found), 1, retried=False) is None
    assert [row.done for row in made.rows] == [1, 0]
