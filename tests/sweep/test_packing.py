"""Shares of a GPU: from measured memory, by kind of trial, larger where they were too small."""

import json
from dataclasses import replace

import pytest
import store_samples as make

from sweep.packing import HELD, Kind, Packing, measured, needed
from sweep.rows import spec_to_json
from sweep.schedule import FixedSchedule
from sweep.worker import Outcome

GIB = 2**30


def jobs(n, **hyper):
    """Jobs of one kind, which differ by seed."""
    found = []
    for seed in range(n):
        spec = make.spec(seed)
        spec = replace(spec, hyper=replace(spec.hyper, **hyper))
        found.append(make.job("/store", make.targets("de_pud"), spec))
    return found


def ended(job, status="done", kind=None, **memory):
    return Outcome(
        job_id=job.job_id, trial_id=job.trial_id, status=status, failure_kind=kind, **memory
    )


def rehearsed(job, peak, total=16 * GIB):
    return ended(job, peak_memory=peak, device_memory=total)


@pytest.mark.parametrize(
    ("peak", "share"),
    [
        (0.1, 0.125),  # the context alone
        (1.2, 0.125),  # 1.38 + 0.59 of 16
        (1.25, 0.25),  # 1.44 + 0.59: past two
        (6.0, 0.5),  # 6.9 + 0.59
        (8.0, 0.625),
        (15.0, 1.0),  # more than there is: a whole card is all one can give
    ],
)
def test_a_share_holds_the_peak_a_margin_and_the_context(peak, share):
    """Peaks on a card of 16 GiB, worked by hand."""
    assert needed(peak * GIB, 16 * GIB) == share


def test_a_new_kind_is_rehearsed_once_and_alone():
    """The first job is rehearsed on a whole card; the others wait, then all get their share."""
    inner = FixedSchedule(jobs(4))
    packing = Packing(inner, "auto")
    first = packing.next()
    assert first.workspace.rehearse
    assert (first.workspace.gpus, first.workspace.memory_fraction) == (1.0, 1.0)
    assert packing.next() is None
    assert not packing.is_done()
    assert packing.finished(first, rehearsed(first, 6 * GIB))  # handed out again: for real
    handed = [packing.next() for _ in range(4)]
    assert {job.trial_id for job in handed} == {job.trial_id for job in jobs(4)}
    assert {(j.workspace.gpus, j.workspace.memory_fraction) for j in handed} == {(0.5, 0.5)}
    assert not any(job.workspace.rehearse for job in handed)
    assert {job.attempt for job in handed} == {1}
    for job in handed:
        assert not packing.finished(job, ended(job))
    assert packing.is_done()
    assert len(inner.ended) == 4


def test_kinds_are_measured_apart():
    """Another batch size is another kind: both are rehearsed, and each gets its own share."""
    small, large = jobs(1, batch_size=8)[0], jobs(1, batch_size=64)[0]
    packing = Packing(FixedSchedule([small, large]), "auto")
    one, two = packing.next(), packing.next()
    assert one.workspace.rehearse
    assert two.workspace.rehearse
    packing.finished(two, rehearsed(two, 10 * GIB))
    packing.finished(one, rehearsed(one, 1 * GIB))
    shares = {
        job.spec.hyper.batch_size: job.workspace.gpus for job in (packing.next(), packing.next())
    }
    assert shares == {8: 0.125, 64: 0.875}  # 11.5 + 0.59 of 16


def test_kinds_that_waited_come_in_the_order_of_the_schedule():
    """Cells go side by side: no kind waits until all trials of another are through."""
    ordered = [job for pair in zip(jobs(3), jobs(3, batch_size=64), strict=True) for job in pair]
    packing = Packing(FixedSchedule(ordered), "auto")
    small, large = packing.next(), packing.next()
    assert packing.next() is None
    packing.finished(small, rehearsed(small, 1 * GIB))
    packing.finished(large, rehearsed(large, 6 * GIB))
    handed = [packing.next() for _ in range(6)]
    assert [job.job_id for job in handed] == [job.job_id for job in ordered]
    assert [job.workspace.gpus for job in handed] == [0.125, 0.5] * 3
    packing.finished(handed[1], ended(handed[1], "failed", "out-of-memory"))
    assert packing.next().workspace.gpus == 1.0
    for job in handed:
        packing.finished(job, ended(job))
    assert packing.is_done()


def test_a_rehearsal_that_fails_leaves_a_whole_card_to_the_trials():
    """Whatever went wrong, the trial itself says it, and with all the memory there is."""
    packing = Packing(FixedSchedule(jobs(2)), "auto")
    first = packing.next()
    assert packing.finished(first, ended(first, "failed", "preempted"))
    assert [packing.next().workspace.gpus for _ in range(2)] == [1.0, 1.0]


def test_what_committed_trials_took_needs_no_rehearsal():
    """Peaks in the store's rows decide; rows of the CPU, failures and forced parts tell nothing."""
    spec = spec_to_json(make.spec())
    row = {
        "spec": spec,
        "status": "done",
        "peak_memory": 6 * GIB,
        "device_memory": 16 * GIB,
        "micro_batch": None,
    }
    rows = [
        row,
        row | {"peak_memory": 5 * GIB},
        row | {"peak_memory": 15 * GIB, "device_memory": None},
        row | {"peak_memory": 15 * GIB, "micro_batch": 4},
        row | {"peak_memory": 15 * GIB, "status": "failed"},
    ]
    shares = measured(rows)
    assert shares == {Kind.of(make.spec()): 0.5}
    packing = Packing(FixedSchedule(jobs(1)), "auto", shares)
    job = packing.next()
    assert (job.workspace.rehearse, job.workspace.gpus) == (False, 0.5)


def test_out_of_memory_leads_to_a_larger_share_for_the_whole_kind():
    """The same job comes again with twice the share, and so do those after it, up to a card."""
    inner = FixedSchedule(jobs(3))
    packing = Packing(inner, 0.25)
    first, second = packing.next(), packing.next()
    assert first.workspace.gpus == 0.25
    assert packing.finished(first, ended(first, "failed", "out-of-memory"))
    again = packing.next()
    assert (again.trial_id, again.workspace.gpus, again.attempt) == (first.trial_id, 0.5, 2)
    assert again.workspace.micro_batch == 0  # the worker has been down to one sentence already
    assert packing.finished(second, ended(second, "failed", "out-of-memory"))
    assert packing.next().workspace.gpus == 0.5  # no more than the kind has by now
    assert packing.next().workspace.gpus == 0.5
    assert packing.finished(again, ended(again, "failed", "out-of-memory"))
    whole = packing.next()
    assert (whole.workspace.gpus, whole.workspace.memory_fraction) == (1.0, 1.0)
    packing.finished(whole, ended(whole, "failed", "out-of-memory"))
    after = packing.next()
    assert after.workspace.micro_batch == whole.spec.hyper.batch_size // 2  # the schedule's ladder


def test_only_so_many_jobs_wait_for_a_rehearsal():
    """A large grid is not drawn into memory while one kind of it is measured."""
    packing = Packing(FixedSchedule(jobs(HELD + 10)), "auto")
    packing.next()
    assert packing.next() is None
    assert len(packing.inner._jobs) == 9  # one rehearsed, HELD waiting


def test_kinds_know_what_memory_depends_on():
    """Seed, rate and ablation do not make a kind; task and precision do."""
    spec = make.spec()
    same = replace(spec, seed=9, ablation="reinit:1", hyper=replace(spec.hyper, learning_rate=1.0))
    assert Kind.of(same) == Kind.of(spec)
    assert Kind.of(replace(spec, precision="bf16")) != Kind.of(spec)
    assert Kind.of(replace(spec, task="parsing")) != Kind.of(spec)
    assert json.loads(spec_to_json(spec))["seed"] == 1
