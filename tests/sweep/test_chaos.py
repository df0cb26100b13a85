"""A study whose workers, nodes and drivers are killed comes out as if nothing had been."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benches are no package that is installed
from bench.chaos_log import Attempt, losses, recomputed, wrong_resumptions

ROOT = Path(__file__).parents[2]


@pytest.mark.ray
@pytest.mark.rehearsal
def test_a_study_under_fire_equals_a_quiet_one():
    """Every trial is committed once, tables are equal to the bit, and little is trained twice."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.chaos", "--seed", "11"),
            *("--trials", "6", "--kills", "5", "--sentences", "120", "--epochs", "4"),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout)
    assert sum(found["kills"].values()) == 5
    assert found["broken"] == {}
    assert found["trials"] == 6
    assert found["attempts_broken"] > 0


def attempt(first, last, **more):
    """An attempt that took steps first..last, a second each, ready at 100."""
    steps = {step: 101.0 + step - first for step in range(first, last + 1)}
    return Attempt("t", 90.0, 100.0, first, steps, **more)


def test_what_a_broken_attempt_lost_is_counted_from_its_last_whole_checkpoint():
    """Steps 3 and 4 came after the state that can be seen; the write cut short is no checkpoint."""
    broken = attempt(0, 4, snapshots={3: 103.0, 5: 105.0}, visible={3: 103.5})
    (loss,) = losses([broken], checkpoint_s=2.0)
    assert (loss.steps, loss.seconds) == (2, 2.0)
    assert loss.allowed_s == 2.0 + 1.0 + 0.5
    assert losses([attempt(0, 4, commits=[True])], checkpoint_s=2.0) == []


def test_steps_that_were_taken_twice_are_counted():
    """Five steps, then three of them and two more: ten were taken, three of them again."""
    attempts = [attempt(0, 4), attempt(2, 6)]
    assert recomputed(attempts) == (10, 3)


def test_an_attempt_that_passed_over_a_checkpoint_is_found():
    """It must begin at the newest state that was there; a later one is no reproach."""
    first = attempt(0, 4, visible={3: 80.0, 5: 95.0})
    assert wrong_resumptions([first, attempt(3, 6)]) == []
    (complaint,) = wrong_resumptions([first, attempt(0, 6)])
    assert complaint == "t began at step 0, not 3"
