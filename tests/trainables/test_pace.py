"""The clock beside a trial: what it times, how often, and that it moves no number."""

from types import SimpleNamespace

import pytest
import torch

from trainables import pace as module
from trainables.pace import Pace


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test moves on."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_the_product_is_timed_every_few_seconds_and_the_shorter_of_two_counts(clock, monkeypatch):
    """At once, then not before three seconds have passed; the mean of what counted."""
    took = iter([0.004, 0.009, 0.050, 0.006])
    monkeypatch.setattr(module, "_once", lambda: next(took))
    pace = Pace(torch.device("cpu"))
    assert pace.matmul_s is None
    pace.look()
    clock[0] += 2.9
    pace.look()
    assert pace.matmul_s == 0.004
    clock[0] += 0.2
    pace.look()
    assert pace.matmul_s == pytest.approx(0.005)


def test_nothing_is_timed_beside_a_gpu():
    """The CPU's speed is not that of the trial."""
    pace = Pace(torch.device("cuda"))
    pace.look()
    assert pace.matmul_s is None


def test_timing_draws_nothing():
    """What a trial draws next is the same with and without it."""
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    pace = Pace(torch.device("cpu"))
    pace.look()
    assert torch.equal(torch.rand(3), wanted)
    assert pace.matmul_s is not None
    assert pace.matmul_s > 0
