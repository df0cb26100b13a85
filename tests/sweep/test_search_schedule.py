"""What a schedule of searches hands out: no barrier, no trial twice, the same points every time."""

import random
from pathlib import Path

import pytest
import search_samples as made

from sweep.search.log import MemoryLog
from sweep.study import StudyError
from trainables.spec import Job

STORE = Path("store")


def points(jobs: list[Job], phase: str = "search") -> list[tuple[str, float, int]]:
    """(ablation, learning rate, batch size) of the jobs of one phase."""
    hypers = ((job.spec.ablation, job.spec.hyper) for job in jobs if job.phase == phase)
    return [(name, hyper.learning_rate, hyper.batch_size) for name, hyper in hypers]


def test_a_grid_is_tried_point_by_point_and_its_best_is_reported():
    """Two cells of six points each; 1e-3 and 16 win, and three seeds of them are reported."""
    jobs = made.Rehearsal(made.study_of(STORE, made.GRID)).run()
    tried = points(jobs)
    assert len(tried) == len(set(tried)) == 12
    assert points(jobs, "report") == [("ref", 1e-3, 16), ("reinit:1", 1e-3, 16)] * 3
    assert {job.spec.seed for job in jobs if job.phase == "search"} == {0}
    assert len({job.job_id for job in jobs}) == len(jobs) == 18


def test_there_is_no_barrier_between_cells():
    """The seeds of a cell whose search is over start while the other cell still searches."""
    rehearsal = made.Rehearsal(made.study_of(STORE, made.GRID))

    def ref_first(running: list[Job]) -> int:
        return next((i for i, job in enumerate(running) if job.spec.ablation == "ref"), 0)

    rehearsal.run(slots=3, pick=ref_first)
    events = rehearsal.events
    reported = events.index(("start", "report", "ref"))
    last = max(i for i, event in enumerate(events) if event == ("end", "search", "reinit:1"))
    searched = [i for i, event in enumerate(events) if event == ("end", "search", "ref")]
    assert max(searched) < reported < last
    assert reported - max(searched) <= 3  # within one round of the slots


@pytest.mark.parametrize("search", [made.GRID, made.TPE])
def test_slots_are_full_as_long_as_anything_can_be_handed_out(search):
    """With two cells and four slots, nobody idles before the last jobs of the study."""
    rehearsal = made.Rehearsal(made.study_of(STORE, search))
    rng = random.Random(1)
    running: list[Job] = []
    idle_with_work = 0
    while not rehearsal.schedule.is_done():
        while len(running) < 4 and (job := rehearsal.take()) is not None:
            running.append(job)
        can_still = any(not s.is_ended for s in rehearsal.layout.searches)
        idle_with_work += len(running) < 4 and can_still
        rehearsal.finish(running.pop(rng.randrange(len(running))))
    assert idle_with_work <= 4  # at the end of a search, when its last trials run


def test_scope_ref_gives_the_winner_of_the_reference_to_all():
    """One search, on ref; the ablation is never searched and takes the winner (D-07)."""
    jobs = made.Rehearsal(made.study_of(STORE, made.GRID | {"scope": "ref"})).run(slots=2)
    assert {name for name, *_ in points(jobs)} == {"ref"}
    assert len(points(jobs)) == 6
    assert sorted(points(jobs, "report")) == [("ref", 1e-3, 16)] * 3 + [("reinit:1", 1e-3, 16)] * 3


@pytest.mark.parametrize(
    "method",
    ["random", "tpe", pytest.param("gp", marks=pytest.mark.slow)],  # loads torch
)
def test_one_worker_tries_the_same_points_every_time(method):
    """With one worker the whole course is a function of the study."""
    search = made.TPE | {"method": method, "trials": 6}
    first = made.Rehearsal(made.study_of(STORE, search)).run()
    second = made.Rehearsal(made.study_of(STORE, search)).run()
    assert [job.job_id for job in first] == [job.job_id for job in second]
    assert len(points(first)) == 12


def test_cells_of_one_study_are_searched_at_different_points():
    """The random start of a search depends on its cell."""
    jobs = made.Rehearsal(made.study_of(STORE, made.TPE)).run()
    found = points(jobs)
    assert not {p[1:] for p in found if p[0] == "ref"} & {p[1:] for p in found if p[0] != "ref"}


def test_a_model_finds_better_points_than_its_random_start():
    """After four random points, those of TPE are better on average than the four were."""
    search = made.TPE | {"trials": 20}
    jobs = made.Rehearsal(made.study_of(STORE, search)).run()
    own = [job.spec for job in jobs if job.phase == "search" and job.spec.ablation == "ref"]
    values = [max(made.curve(spec).values()) for spec in own]
    assert sum(values[4:]) / 16 > sum(values[:4]) / 4


@pytest.mark.parametrize("killed_after", [1, 3, 6, 9, 13, 18])
def test_a_driver_started_again_asks_what_the_first_would_have_asked(killed_after):
    """Killed after any number of trials, one of them under way: the same trials as undisturbed."""
    study = made.study_of(STORE, made.TPE)
    calm = [job.job_id for job in made.Rehearsal(study).run()]
    log = MemoryLog()
    first = made.Rehearsal(study, log)
    before = []
    for _ in range(killed_after):
        job = first.take()
        before.append(job.job_id)
        first.finish(job)
    pending = first.take()
    after = [job.job_id for job in made.Rehearsal(study, log, first.results).run()]
    assert pending.job_id in after
    assert sorted(before + after) == sorted(calm)


def test_points_asked_for_are_in_the_log_before_they_are_handed_out():
    """A driver that dies with three trials under way leaves their points behind."""
    log = MemoryLog()
    rehearsal = made.Rehearsal(made.study_of(STORE, made.TPE), log)
    jobs = [rehearsal.take() for _ in range(3)]
    logged = [point for points in log.points.values() for point in points]
    for job in jobs:
        hyper = {"learning_rate": job.spec.hyper.learning_rate}
        hyper["batch_size"] = job.spec.hyper.batch_size
        assert hyper in logged


def test_at_most_so_many_trials_of_one_model_run_at_a_time():
    """TPE proposes two ahead of its results at most, whatever the number of slots."""
    search = made.TPE | {"at_once": 2}
    rehearsal = made.Rehearsal(made.study_of(STORE, search))
    jobs = []
    while (job := rehearsal.take()) is not None:
        jobs.append(job)
    assert sorted(name for name, *_ in points(jobs)) == ["ref"] * 2 + ["reinit:1"] * 2


def test_a_point_proposed_twice_is_run_once():
    """Eight proposals among two points: two trials a cell, and the search ends all the same."""
    search = {"method": "tpe", "trials": 8, "learning_rate": [1e-4, 1e-3]}
    jobs = made.Rehearsal(made.study_of(STORE, search)).run(slots=3)
    assert sorted(points(jobs)) == sorted(
        (name, rate, 8) for name in made.ABLATIONS for rate in (1e-4, 1e-3)
    )
    assert len(points(jobs, "report")) == 6


def test_a_point_that_fails_for_good_does_not_end_the_search():
    """The best of the others is reported; a cell without any winner is not reported."""
    rehearsal = made.Rehearsal(made.study_of(STORE, made.GRID))
    jobs = []
    while not rehearsal.schedule.is_done():
        job = rehearsal.take()
        jobs.append(job)
        is_bad = job.spec.hyper.learning_rate == 1e-3 or job.spec.ablation == "reinit:1"
        rehearsal.finish(job, "user" if is_bad and job.phase == "search" else None)
    assert points(jobs, "report") == [("ref", 1e-4, 16)] * 3
    assert rehearsal.layout.cells[1].is_stuck


def test_pruning_compares_trials_of_one_cell_only():
    """A harder cell, five points below the other at every point, is pruned no more than it."""
    search = made.GRID | {"prune": "asha", "reduction": 2}
    rehearsal = made.Rehearsal(made.study_of(STORE, search))
    rehearsal.run(slots=2)
    pruned = {
        cell.template.spec.ablation: [
            told.state for _, _, told in cell.search.tried if told.state == "pruned"
        ]
        for cell in rehearsal.layout.cells
    }
    assert len(pruned["ref"]) == len(pruned["reinit:1"]) > 0


def test_reported_trials_are_never_pruned():
    """Pruning ends with the search."""
    search = made.GRID | {"prune": "asha"}
    rehearsal = made.Rehearsal(made.study_of(STORE, search))
    for job in rehearsal.run(slots=2):
        if job.phase == "report":
            assert rehearsal.results.of(job.trial_id).state == "done"


def test_a_pruned_trial_does_not_win():
    """The winner went through all its epochs."""
    rehearsal = made.Rehearsal(made.study_of(STORE, made.TPE | {"prune": "asha"}))
    rehearsal.run()
    for search in rehearsal.layout.searches:
        _, _, told = search.tried[search.best]
        assert told.state == "done"


def test_the_total_is_right_from_the_beginning_and_in_the_end():
    """Duplicates lower the total by what they spare; it ends as the number of jobs."""
    rehearsal = made.Rehearsal(made.study_of(STORE, made.GRID))
    assert rehearsal.schedule.total == 18
    search = {"method": "tpe", "trials": 8, "learning_rate": [1e-4, 1e-3]}
    rehearsal = made.Rehearsal(made.study_of(STORE, search))
    assert rehearsal.schedule.total == 22
    jobs = rehearsal.run()
    assert rehearsal.schedule.total == len(jobs) == 10


def test_a_reused_search_seed_is_not_run_again():
    """With reuse_search the winner's trial is one of the reported ones."""
    study = made.study_of(
        STORE, made.GRID, seeds={"report": [0, 1], "search": 0, "reuse_search": True}
    )
    jobs = made.Rehearsal(study).run(slots=2)
    assert len({job.trial_id for job in jobs}) == len(jobs) == 14
    assert [job.spec.seed for job in jobs if job.phase == "report"] == [1, 1]


def test_a_lost_worker_costs_the_search_nothing():
    """A preempted trial of a search is handed out again before anything new."""
    rehearsal = made.Rehearsal(made.study_of(STORE, made.GRID))
    job = rehearsal.take()
    rehearsal.finish(job, "preempted")
    again = rehearsal.take()
    assert (again.job_id, again.attempt) == (job.job_id, 2)
    rehearsal.finish(again)
    assert len(rehearsal.run()) == 17


def test_a_store_that_takes_nothing_ends_the_searches():
    """Three failures to store in a row: nothing more is handed out, and nobody waits."""
    rehearsal = made.Rehearsal(made.study_of(STORE, made.GRID))
    for _ in range(3):
        assert not rehearsal.schedule.is_done()  # looks ahead, as executors do
        job = rehearsal.take()
        rehearsal.finish(job, "storage")
    assert rehearsal.schedule.is_done()
    assert rehearsal.take() is None


UNTIL = {"report": [1, 2, 3], "until": {"half_width": 0.005, "max": 8}}


def noisy(spread: float):
    """Test scores with a spread over seeds that differs between the reference and the ablation."""

    def scores(spec, request):
        shift = spread * ((spec.seed * 7) % 5 - 2) if spec.ablation != "ref" else 0.0
        return {(ref.key, "upos"): 0.8 + shift for ref in request.targets}

    return scores


def test_seeds_are_added_where_a_difference_is_uncertain(monkeypatch):
    """A spread that wants more than eight seeds gets eight, the reference too; none gets none."""
    study = made.study_of(STORE, {}, seeds=UNTIL)
    monkeypatch.setattr(made, "scores", noisy(0.01))
    jobs = made.Rehearsal(study).run(slots=2)
    seeds = {
        name: [j.spec.seed for j in jobs if j.spec.ablation == name] for name in made.ABLATIONS
    }
    assert sorted(seeds["ref"]) == sorted(seeds["reinit:1"]) == [1, 2, 3, 4, 5, 6, 7, 8]
    monkeypatch.setattr(made, "scores", noisy(0.0))
    assert len(made.Rehearsal(study).run(slots=2)) == 6


def test_added_seeds_do_not_depend_on_who_asks(monkeypatch):
    """Two slots or one, killed in between or not: the same seeds."""
    monkeypatch.setattr(made, "scores", noisy(0.002))
    study = made.study_of(STORE, {}, seeds=UNTIL)
    one = sorted(job.job_id for job in made.Rehearsal(study).run())
    four = sorted(job.job_id for job in made.Rehearsal(study).run(slots=4))
    assert one == four
    assert 6 < len(one) < 16
    first = made.Rehearsal(study)
    done = [first.take() for _ in range(6)]
    for job in done:
        first.finish(job)
    rest = [job.job_id for job in made.Rehearsal(study, results=first.results).run()]
    assert sorted([*(job.job_id for job in done), *rest]) == one


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": {"method": "tpe", "learning_rate": [1e-4]}}, r"search\.trials: missing"),
        ({"search": {"method": "grid"}}, r'search\.method = "grid": nothing to try'),
        (
            {"search": {"method": "grid", "learning_rate": {"low": 1e-5, "high": 1e-3}}},
            r"search\.learning_rate = .*: a grid needs a list",
        ),
        ({"search": made.GRID | {"trials": 3}}, r"search\.trials = 3: a grid tries all"),
        (
            {"search": {"method": "grid", "learning_rate": [-1.0]}},
            r"search\.learning_rate = \[-1.0\]: -1.0 cannot be tried",
        ),
        (
            {"search": {"method": "grid", "batch_size": [1.5]}},
            r"search\.batch_size = \[1.5\]: 1.5 cannot be tried",
        ),
        (
            {"search": made.TPE | {"learning_rate": {"low": 1e-2, "high": 1e-3}}},
            r"search\.learning_rate = .*: low must be below high",
        ),
        ({"search": made.GRID | {"lerning_rate": [1.0]}}, r"Did you mean 'learning_rate'"),
        ({"search": made.GRID, "seeds": {"report": [0, 1]}}, r"also the seed of the search"),
        ({"seeds": {"report": [1], "until": {"half_width": 0.01, "max": 5}}}, r"needs two seeds"),
        (
            {"seeds": {"report": [1, 2, 3], "until": {"half_width": 0.01, "max": 2}}},
            r"seeds\.until\.max = 2: below the 3",
        ),
    ],
)
def test_a_search_that_cannot_be_is_refused(changes, message):
    """Each mistake has its own message: key, value, how to mend it."""
    with pytest.raises(StudyError, match=message):
        made.study_of(STORE, changes.pop("search", {}), **changes)
