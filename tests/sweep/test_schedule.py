"""What a fixed schedule hands out, in which order, and how often."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep.schedule import FixedSchedule
from sweep.worker import Outcome
from trainables.spec import Job

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))
import executor_fakes as fakes

KINDS = ["user", "out-of-memory", "preempted", "unknown", "storage"]


def jobs(n: int) -> list[Job]:
    """Jobs named a, b, c, ... of batch size 16."""
    return [fakes.job("store", chr(ord("a") + i)) for i in range(n)]


def ended(job: Job, kind: str | None = None) -> Outcome:
    """An attempt that was done, or failed in a certain way."""
    return Outcome(
        job_id=job.job_id,
        trial_id=job.trial_id,
        status="failed" if kind else "done",
        failure_kind=kind,
    )


def take(schedule: FixedSchedule) -> Job:
    """The next job, which must be there."""
    job = schedule.next()
    assert job is not None
    return job


def test_hands_out_jobs_in_order_and_then_nothing() -> None:
    """Jobs come in the order given; the schedule is done when the last one has ended."""
    schedule = FixedSchedule(jobs(2))
    first, second = take(schedule), take(schedule)
    assert (first.job_id, second.job_id) == ("a", "b")
    assert schedule.next() is None
    assert not schedule.is_done()
    assert not schedule.finished(first, ended(first))
    assert not schedule.finished(second, ended(second))
    assert schedule.is_done()
    assert schedule.total == 2


def test_refuses_jobs_that_share_an_id() -> None:
    """Two jobs of one id would commit over each other."""
    with pytest.raises(ValueError, match="2 jobs share 1 ids"):
        FixedSchedule([*jobs(1), *jobs(1)])


def test_a_user_error_is_final() -> None:
    """The same study and data fail the same way, so there is one attempt."""
    schedule = FixedSchedule(jobs(1))
    job = take(schedule)
    assert not schedule.finished(job, ended(job, "user"))
    assert schedule.is_done()
    assert schedule.ended["a"].failure_kind == "user"


def test_out_of_memory_halves_the_micro_batch_down_to_one() -> None:
    """Batch 16 is tried whole, then in windows of 8, 4, 2 and 1; then the job has failed."""
    schedule = FixedSchedule(jobs(1), max_attempts=1)
    seen = []
    again = True
    while again:
        job = take(schedule)
        seen.append((job.attempt, job.workspace.micro_batch))
        again = schedule.finished(job, ended(job, "out-of-memory"))
    assert seen == [(1, 0), (2, 8), (3, 4), (4, 2), (5, 1)]


def test_a_smaller_micro_batch_changes_nothing_else() -> None:
    """The attempt after running out of memory differs in attempt and micro-batch only."""
    schedule = FixedSchedule(jobs(1))
    first = take(schedule)
    schedule.finished(first, ended(first, "out-of-memory"))
    second = take(schedule)
    workspace = replace(second.workspace, micro_batch=0)
    assert replace(second, attempt=1, workspace=workspace) == first


def test_a_preempted_job_is_first_in_line_again() -> None:
    """A job with a checkpoint goes on before new ones are begun."""
    schedule = FixedSchedule(jobs(3))
    job = take(schedule)
    assert schedule.finished(job, ended(job, "preempted"))
    assert take(schedule) == replace(job, attempt=2)


def test_an_unknown_failure_waits_for_the_others() -> None:
    """What failed for an unknown reason is tried again after all others, a bounded time."""
    schedule = FixedSchedule(jobs(2), max_attempts=2)
    a = take(schedule)
    assert schedule.finished(a, ended(a, "unknown"))
    b = take(schedule)
    assert b.job_id == "b"
    schedule.finished(b, ended(b))
    again = take(schedule)
    assert (again.job_id, again.attempt) == ("a", 2)
    assert not schedule.finished(again, ended(again, "unknown"))


def test_preemptions_do_not_use_up_attempts() -> None:
    """Nineteen lost workers cost none of the three attempts at an unknown failure."""
    schedule = FixedSchedule(jobs(1))
    for kind in ["preempted"] * 19 + ["unknown"] * 2:
        job = take(schedule)
        assert schedule.finished(job, ended(job, kind))
    last = take(schedule)
    assert last.attempt == 22
    assert not schedule.finished(last, ended(last, "unknown"))


def test_a_store_that_takes_nothing_ends_the_sweep() -> None:
    """Three failures to store in a row stop the handing out; a success in between starts anew."""
    schedule = FixedSchedule(jobs(9))
    for kind in ["storage", "storage", None, "storage", "storage"]:
        job = take(schedule)
        schedule.finished(job, ended(job, kind))
    assert not schedule.is_done()
    job = take(schedule)
    assert not schedule.finished(job, ended(job, "storage"))
    assert schedule.next() is None
    assert schedule.is_done()


@given(
    n=st.integers(1, 5),
    endings=st.lists(st.sampled_from([*KINDS, None]), max_size=200),
    picks=st.randoms(use_true_random=False),
)
def test_every_job_ends_exactly_once(n: int, endings: list[str | None], picks) -> None:
    """Whatever fails in whatever order, attempts are bounded and each job has one last word."""
    schedule = FixedSchedule(jobs(n))
    running: list[Job] = []
    ends: list[str] = []
    attempts: set[tuple[str, int]] = set()
    moods = iter([*endings, *[None] * 1000])
    while not schedule.is_done():
        while (job := schedule.next()) is not None:
            assert (job.job_id, job.attempt) not in attempts
            attempts.add((job.job_id, job.attempt))
            running.append(job)
        job = running.pop(picks.randrange(len(running)))
        if not schedule.finished(job, ended(job, next(moods))):
            ends.append(job.job_id)
    assert sorted(ends) == sorted(schedule.ended)
    assert len(ends) == len(set(ends)) <= n
