"""The rehearsal's executor: hand-worked timings, and what must hold however nodes come and go."""

import math
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweep.clusterfile import Cluster, NodeType
from sweep.complaints import StudyError
from sweep.schedule import FixedSchedule
from sweep.simulate.executor import Delays, SimulatedExecutor
from sweep.simulate.rehearsal import Silent

sys.path.insert(0, str(Path(__file__).parents[2] / "contracts"))
import executor_fakes as fakes

NO_DELAYS = Delays(cold_s=0, warm_s=0, driver_s=0, notice_s=0, checkpoint_s=100)
HEAD = NodeType(name="head", cpus=0, max_workers=1, usd_per_hour=0)


def cluster(n: int, *, cpus: float = 1, boot_s: float = 0, **changes) -> Cluster:
    """Up to `n` nodes of `cpus` one-core slots."""
    worker = NodeType(name="worker", cpus=cpus, max_workers=n, **changes)
    return Cluster(name="c", head=HEAD, workers=(worker,), max_workers=n, boot_s=boot_s)


def run(of: Cluster, seconds: dict[str, float], schedule=None, **options):
    """Rehearse jobs of given durations; returns the account and the schedule."""
    jobs = [fakes.job("store", name) for name in seconds]
    schedule = schedule or FixedSchedule(jobs)
    executor = SimulatedExecutor(
        of,
        lambda job, _node: seconds[job.job_id],
        **{"delays": NO_DELAYS, "keeps_spans": True} | options,
    )
    return executor.run(schedule, Silent()), schedule


def spans(account) -> list[tuple[str, float, float]]:
    """(job, began, ended), in order of their ends."""
    return [(span.job.job_id, span.began, span.ended) for span in account.spans]


def test_one_slot_runs_jobs_one_after_the_other():
    """Jobs of 100 and 50 s on one slot take 150 s, in the order of the schedule."""
    account, _ = run(cluster(1), {"a": 100, "b": 50})
    assert spans(account) == [("a", 0, 100), ("b", 100, 150)]
    assert (account.makespan_s, account.busy_s, account.attempts) == (150, 150, 2)


def test_a_slot_that_is_free_first_takes_the_next_job():
    """100, 20 and 30 s on two slots: the third job follows the second, done after 100 s."""
    account, _ = run(cluster(1, cpus=2), {"a": 100, "b": 20, "c": 30})
    assert spans(account) == [("b", 0, 20), ("c", 20, 50), ("a", 0, 100)]


def test_nodes_come_on_demand_after_their_boot():
    """Four jobs of 100 s make both nodes come; each runs two, 60 s of boot before."""
    account, _ = run(cluster(2, boot_s=60), dict.fromkeys("abcd", 100.0))
    assert account.makespan_s == 260
    assert [node.up for node in account.fleet.nodes[1:]] == [60, 60]


def test_no_more_nodes_come_than_there_is_work():
    """Three jobs on nodes of two slots launch two of ten nodes."""
    account, _ = run(cluster(10, cpus=2, boot_s=60), dict.fromkeys("abc", 100.0))
    assert account.fleet.most_workers == 2


def test_five_nodes_come_first_then_as_many_as_are_up():
    """Ten jobs of 1,000 s on ten nodes: five after 60 s, five after 120 s, done at 1,120 s."""
    account, _ = run(cluster(10, boot_s=60), dict.fromkeys("abcdefghij", 1000.0))
    assert sorted(node.up for node in account.fleet.nodes[1:]) == [60] * 5 + [120] * 5
    assert account.makespan_s == 1120


def test_nodes_that_idle_are_given_back_down_to_the_least():
    """Of two nodes with one long and one short job, the idle one goes 300 s after its job."""
    seconds = {"long": 1000.0, "short": 100.0}
    account, _ = run(cluster(2), seconds)
    assert {node.gone for node in account.fleet.nodes[1:]} == {None, 400}
    account, _ = run(cluster(2, min_workers=2), seconds)
    assert [node.gone for node in account.fleet.nodes[1:]] == [None, None]


def test_cold_and_warm_workers_and_the_driver_cost_time():
    """First job 10 + 1 s late, the next 2 + 1 s after it; only the jobs count as busy."""
    delays = Delays(cold_s=10, warm_s=2, driver_s=1)
    account, _ = run(cluster(1), {"a": 100, "b": 50}, delays=delays)
    assert spans(account) == [("a", 11, 111), ("b", 114, 164)]
    assert account.busy_s == 150


def test_no_more_jobs_are_out_than_workers_allow():
    """With one worker, two free slots still run one job at a time."""
    account, _ = run(cluster(1, cpus=2), {"a": 100, "b": 50}, workers=1)
    assert account.makespan_s == 150


def test_gpu_shares_fill_cards_not_nodes():
    """Two cards hold four trials of 0.4, as 0.4 fits twice on a card, and cores may be fewer."""
    node = NodeType(name="n", cpus=8, gpus=2, device="T4", max_workers=1)
    assert node.slots(1, 0.4) == 4
    assert node.slots(4, 0.4) == 2
    assert node.slots(1, 0) == 8


def test_a_trial_that_fits_nowhere_is_refused_with_what_there_is():
    """Nobody waits for a node that cannot come."""
    with pytest.raises(StudyError, match=r"a trial of 2 cores fits on no node \(head: 0 cores"):
        run(cluster(3), {"a": 1}, cpus=2)


def test_a_schedule_that_waits_for_nothing_is_an_error():
    """A scheduler that hands out nothing although nothing runs would hang a real sweep."""

    class Stuck(FixedSchedule):
        def next(self):
            """Never anything."""
            return

    with pytest.raises(RuntimeError, match="wait for ever"):
        run(cluster(1), {"a": 1}, Stuck([fakes.job("store", "a")]))


class Lives:
    """A generator whose spot nodes live as long as a test says, and the rest for ever."""

    def __init__(self, *lives: float) -> None:
        self._lives = list(lives)

    def exponential(self, _mean: float) -> float:
        """The next life."""
        return self._lives.pop(0) if self._lives else 1e12


def test_a_lost_node_costs_what_its_checkpoint_lacks(monkeypatch):
    """A node dies at 250 s of 400, checkpoints every 100 s: 200 s are kept, 50 s are lost."""
    monkeypatch.setattr("numpy.random.default_rng", lambda _seed: Lives(250))
    delays = replace(NO_DELAYS, notice_s=5)
    of = cluster(1, is_spot=True, boot_s=60)
    account, schedule = run(of, {"a": 400}, delays=delays, mtbf_s=1)
    # Up at 60, taken at 310, known at 315, the next one up at 375, 200 s of work left.
    assert spans(account) == [("a", 60, 310), ("a", 375, 575)]
    assert (account.lost_s, account.interruptions, account.hit) == (50, 1, 1)
    assert schedule.ended["a"].status == "done"


def test_a_job_that_never_survives_is_given_up_by_the_schedule(monkeypatch):
    """Nodes that die after 10 s lose the job 20 times; then it has failed for good."""
    monkeypatch.setattr("numpy.random.default_rng", lambda _seed: Lives(*[10.0] * 30))
    account, schedule = run(cluster(1, is_spot=True), {"a": 400}, mtbf_s=1)
    assert account.attempts == 20
    assert list(schedule.lost) == ["a"]


def test_pruning_ends_a_job_at_the_epoch():
    """A schedule that stops every trial after its first of two epochs saves the rest of it."""

    class Strict(FixedSchedule):
        def report(self, _job, _point):
            return False

    jobs = [fakes.job("store", "a")]
    curves = [fakes.point(1), fakes.point(2)]
    account, schedule = run(cluster(1), {"a": 300}, Strict(jobs), curves=lambda _job: curves)
    assert spans(account) == [("a", 0, 100)]
    assert schedule.ended["a"].status == "pruned"


def test_the_watch_hears_every_epoch_once():
    """A job with a curve of two points reports both, in order, and then ends."""
    heard = []

    class Ear(Silent):
        def epoch(self, _job, point):
            heard.append(point.epoch)

    executor = SimulatedExecutor(
        cluster(1), lambda _job, _node: 9.0, curves=lambda _job: [fakes.point(1), fakes.point(2)]
    )
    executor.run(FixedSchedule([fakes.job("store", "a")]), Ear())
    assert heard == [1, 2]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(10, 3000), min_size=1, max_size=20),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_all_work_is_done_once_and_lost_work_is_accounted(durations, nodes, slots, seed):
    """Whatever is taken back: every job ends, and time used = work asked + work lost."""
    seconds = {f"j{i}": float(s) for i, s in enumerate(durations)}
    of = cluster(nodes, cpus=slots, is_spot=True, boot_s=30)
    jobs = [fakes.job("store", name) for name in seconds]
    schedule = FixedSchedule(jobs, max_lost=10_000)
    account, _ = run(of, seconds, schedule, mtbf_s=600, seed=seed)
    assert {i for i, outcome in schedule.ended.items() if outcome.status == "done"} == set(seconds)
    assert math.isclose(account.busy_s, sum(durations) + account.lost_s)
    assert account.lost_s <= 100 * account.hit
    per_slot: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for span in account.spans:
        per_slot.setdefault((span.node, span.slot), []).append((span.began, span.ended))
    for used in per_slot.values():
        ordered = sorted(used)
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))
