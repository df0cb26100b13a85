"""How fast machines were: smoothed over a minute, told against the latest, host by host."""

import math
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from analysis.schema import TRIALS
from sweep.pricing.paces import _smooth, paces_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def table(*rows):
    """Trials of (name, minute, seconds of the product[, host, threads])."""
    made = []
    for name, minute, matmul_s, *where in rows:
        host, threads = where or ("here", 1)
        finished = None if minute is None else START + timedelta(minutes=minute)
        made.append((name, finished, threads, host, matmul_s))
    names = ["commit_id", "finished", "threads", "host", "matmul_s"]
    schema = pa.schema([(name, TRIALS.field(name).type) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in made], schema=schema)


@pytest.mark.parametrize(
    "rows", [(), (("old", 1, None),), (("running", None, 0.004),), (("gpu", 3, None, "g", 4),)]
)
def test_where_nothing_was_timed_nothing_is_said(rows):
    """Rows of earlier versions, of GPUs, and without an end."""
    assert paces_of(table(*rows)) == ({}, 0.0)


def test_old_rows_lie_beside_new_ones():
    """Those that say nothing get no pace."""
    paces, _ = paces_of(table(("old", 1, None), ("new", 2, 0.004)))
    assert paces == {"new": pytest.approx(1.0)}


def test_the_latest_trials_are_the_measure():
    """Half as fast ten half-lives ago: those trials took twice as long as they would now."""
    paces, drift = paces_of(table(("then", 0, 0.008), ("now", 300, 0.004), ("too", 301, 0.004)))
    assert paces["then"] == pytest.approx(2.0, rel=0.01)
    assert paces["now"] == pytest.approx(1.0, rel=0.01)
    assert drift > 0.2


def test_a_host_that_is_slow_for_good_is_slow_and_not_unsteady():
    """Its trials count as slow; the spread is what it is for one steady host."""
    hosts = {"a": 0.004, "b": 0.008}
    rows = [(f"{host}{i}", i, took, host, 1) for host, took in hosts.items() for i in range(9)]
    paces, drift = paces_of(table(*rows))
    assert paces["b0"] / paces["a0"] == pytest.approx(2.0)
    assert drift < 0.05


def test_threads_are_not_compared():
    """Two threads are twice as fast in the product, and nobody is slow."""
    paces, drift = paces_of(table(("one", 1, 0.004, "a", 1), ("two", 2, 0.002, "a", 2)))
    assert paces == {"one": pytest.approx(1.0), "two": pytest.approx(1.0)}
    assert drift < 0.06


def test_neighbours_in_time_are_heard():
    """By hand: a minute apart the weight is 1/e; an hour apart nobody is heard."""
    near = 1 / math.e
    assert _smooth([(0.0, 0.0), (60.0, 1.0)]) == pytest.approx([near / (1 + near), 1 / (1 + near)])
    assert _smooth([(0.0, 0.0), (3600.0, 1.0)]) == pytest.approx([0.0, 1.0])
    assert _smooth([(5.0, 0.0), (5.0, 1.0), (5.0, 2.0)]) == pytest.approx([1.0, 1.0, 1.0])
