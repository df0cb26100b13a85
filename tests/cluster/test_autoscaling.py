"""A sweep on Ray's fake multi-node autoscaler: nodes come on demand, are lost, and go when idle."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.cluster]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def seen(tmp_path_factory, apart):
    """What `autoscaled.py` saw."""
    folder = tmp_path_factory.mktemp("autoscaled")
    path = os.pathsep.join([str(HERE), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*apart, sys.executable, str(HERE / "autoscaled.py"), str(folder)],
        env=os.environ
        | {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": path,
            "RAY_USAGE_STATS_ENABLED": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(told)


def test_nodes_come_on_demand_and_are_gone_in_the_end(seen):
    """Six halves of a GPU bring three nodes, and none is left after the sweep."""
    counts = [n for _, n in seen["nodes"]]
    assert counts[0] == 0
    assert max(n for at, n in seen["nodes"] if at < seen["killed a node"]) == 3
    assert counts[-1] == 0


def test_the_last_trial_keeps_only_its_own_node(seen):
    """While one long trial runs and nothing waits, the other nodes are given back."""
    assert seen["only the long job is left"] < seen["shrank to the node of the long job"]
    assert seen["shrank to the node of the long job"] < seen["ended"]


def test_a_lost_node_is_replaced_while_its_trials_wait(seen):
    """Its two trials have no room elsewhere: the story waits until they began on a new one.

    For some seconds there may be four: a machine is gone before Ray has missed its heartbeat.
    """
    assert len(seen["lost"]) == 1
    assert max(n for at, n in seen["nodes"] if at > seen["had another node"]) <= 3


def test_a_lost_node_costs_no_trial(seen):
    """Trials of a killed node are tried again and go on from their last epoch, all to the end."""
    done = [name for name, _, status, _ in seen["ends"] if status == "done"]
    assert sorted(done) == sorted(["long", *(f"busy{i}" for i in range(5))])
    lost = [
        name for name, _, status, kind in seen["ends"] if (status, kind) == ("failed", "preempted")
    ]
    assert lost
    for name in lost:
        assert seen["epochs"][name] == ["1/1", "2/1", "3/2"]
    for name in set(done) - set(lost):
        assert seen["epochs"][name] == ["1/1", "2/1", "3/1"]
