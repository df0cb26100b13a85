"""Searches in a rehearsal: the real deciding code, on made-up scores and a virtual clock."""

import pytest

from sweep.clusterfile import imagined_cluster
from sweep.imagined import counted, imagined
from sweep.pricing.instances import price_list
from sweep.simulate.executor import SimulatedExecutor
from sweep.simulate.options import Asked
from sweep.simulate.rehearsal import Silent, job_for
from sweep.simulate.searching import Rehearsal, curve
from sweep.simulate.studies import simulate_study
from sweep.study import build_study


def study(method="random", prune="off", **changes):
    """Two sources, two ablations, 6 points of a search in each cell, then two seeds."""
    table = {
        "name": "hunt",
        "encoder": {"model": "m"},
        "data": {"sources": {"en": "en_ewt", "ru": "ru_gsd"}},
        "grid": {"task": "upos", "source": ["en", "ru"], "ablation": ["ref", "reinit:1"]},
        "hyper": {"batch_size": 8, "epochs": 4},
        "search": {
            "method": method,
            "trials": 6,
            "scope": "cell",
            "learning_rate": {"low": 1e-5, "high": 1e-3, "log": True},
            "prune": prune,
        },
        "seeds": {"search": 0, "report": [1, 2]},
        "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
    }
    return build_study(table | changes)


def rehearse(of, nodes=3):
    return simulate_study(of, Asked(nodes=nodes, repeats=1, prices=["1"]), counted(of))[0]


def test_every_search_is_run_to_its_end_and_then_its_seeds():
    """4 cells x (6 points + 2 seeds) come to an end; without pruning none is stopped."""
    told = rehearse(study())
    assert (told.trials, told.ended, told.pruned, told.failed) == (32, 32, 0, 0)


def test_pruning_stops_trials_and_saves_time():
    """With ASHA some of the 24 trials of searches stop early, and none of the 8 reported."""
    whole, pruned = rehearse(study()), rehearse(study(prune="asha"))
    assert 0 < pruned.pruned <= 16
    assert pruned.ended == 32
    assert pruned.makespan_s.mean < whole.makespan_s.mean


def test_seeds_are_added_where_intervals_are_wide():
    """Made-up seeds differ by 0.01: a half width of 0.003 takes all 5 seeds, 0.9 only the first."""
    narrow = {"search": 0, "report": [1, 2, 3], "until": {"half_width": 0.003, "max": 5}}
    wide = {"search": 0, "report": [1, 2, 3], "until": {"half_width": 0.9, "max": 5}}
    assert rehearse(study(seeds=wide)).ended == 24 + 12
    assert rehearse(study(seeds=narrow)).ended > 24 + 12


def test_no_cell_waits_for_the_search_of_another():
    """A cell's first reported trial begins before the last trial of some other search has ended."""
    of = study()
    plan = counted(of)
    schedule = Rehearsal(of, imagined(of), lambda trial: job_for(trial, trial.request, plan))
    slow = SimulatedExecutor(
        imagined_cluster(4, prices=price_list()),
        lambda job, _node: 100.0 if job.spec.source == "en" else 1000.0,
        curves=curve,
        keeps_spans=True,
    )
    spans = slow.run(schedule, Silent()).spans
    first_report = min(span.began for span in spans if span.job.phase == "report")
    last_search = max(span.ended for span in spans if span.job.phase == "search")
    assert first_report < last_search
    ends = {}
    for span in spans:
        if span.job.phase == "search":
            cell = span.job.spec.source, span.job.spec.ablation
            ends[cell] = max(ends.get(cell, 0.0), span.ended)
    for span in spans:
        if span.job.phase == "report":
            assert span.began >= ends[span.job.spec.source, span.job.spec.ablation]


def test_a_made_up_curve_rises_and_repeats_itself():
    """The same trial learns the same way in every rehearsal; a probe learns nothing."""
    of = study()
    plan = counted(of)
    probe, *_, trial = [job_for(left.trial, left.request, plan) for left in plan.left]
    points = curve(trial)
    assert [point.epoch for point in points] == [1, 2, 3, 4]
    assert points[0].dev_value < points[2].dev_value < 1
    assert curve(trial) == points
    assert probe.spec.train is not None or curve(probe) == []


@pytest.mark.slow
def test_tpe_is_rehearsed_with_its_own_proposals():
    """Optuna proposes from made-up scores: the same rehearsal twice is the same."""
    one, other = rehearse(study("tpe", "asha")), rehearse(study("tpe", "asha"))
    assert one.makespan_s == other.makespan_s
    assert one.ended == 32
