"""`sweep simulate` and `sweep plan --cluster`: from a study file alone to time and money."""

import json
import subprocess
import sys

import pytest

from sweep.cli import main
from sweep.complaints import StudyError
from sweep.simulate.options import Asked, seconds_of, setting_of
from sweep.study import build_study

CLUSTER = """
cluster_name: lab
max_workers: 15
provider: {type: aws}
head_node_type: head
available_node_types:
  head: {resources: {CPU: 0}, node_config: {InstanceType: m5.large}}
  t4:
    node_config: {InstanceType: g4dn.xlarge, InstanceMarketOptions: {MarketType: spot}}
"""


def study(**resources):
    return build_study(
        {
            "name": "s",
            "encoder": {"model": "m"},
            "data": {"sources": {"en": "en_ewt"}},
            "grid": {"task": "upos", "source": "en"},
            "hyper": {"learning_rate": 1e-4, "batch_size": 8, "epochs": 2},
            "seeds": {"report": [1, 2]},
            "evaluate": {"targets": ["en", "fr"], "naming": "{lang}_pud"},
            "resources": resources,
        }
    )


def run(capsys, *arguments):
    """Exit code, standard output and error of the command line."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def test_the_papers_grid_on_fifteen_cards(capsys):
    """316 trials on 15 T4 at a quarter each: sixty at a time, all figures in order."""
    code, out, _ = run(
        capsys,
        *("simulate", "first-align", "--nodes", "15", "--gpus-per-node", "1", "--share", "0.25"),
        *("--price", "0.2", "--spot-mtbf", "2h", "--repeats", "3", "--json"),
    )
    told = json.loads(out)
    assert code == 0
    assert (told["trials"], told["slots"], told["most_nodes"]) == (316, 60, 15)
    for name in ("makespan_s", "busy_hours", "billed_hours", "usd"):
        expected, low, high = told[name]
        assert 0 < low <= expected <= high
    assert told["usd"][0] == pytest.approx(0.2 * told["billed_hours"][0])
    assert told["busy_hours"][0] < told["billed_hours"][0]
    assert 0 < told["utilisation"] <= 1
    assert told["nodes_taken_back"] > 0
    assert told["measured_trials"] == 0


def test_a_rehearsal_repeats_itself(capsys):
    """Equal seeds give equal rehearsals; another seed gives another."""
    command = ("simulate", "first-align", "--nodes", "2", "--gpus-per-node", "4", "--repeats", "2")
    first, again, other = (
        run(capsys, *command, "--json", "--seed", seed)[1] for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_a_plan_says_what_a_cluster_file_costs(capsys, tmp_path):
    """Below the plan: hours, dollars, time, and what they rest on; in JSON as `quote`."""
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    command = ("plan", "first-align", "--counts", "--cluster", str(file))
    gpu = ("--set", "resources.gpus=0.25")
    code, out, _ = run(capsys, *command, *gpu)
    assert code == 0
    assert "On up to 15 spot g4dn.xlarge (1 x T4) at 0.25 GPU a trial: " in out
    assert "Speeds: a model of operations and assumed throughput" in out
    assert "--price NAME=USD overrules them" in out
    assert "These machines have GPUs" not in out
    assert (
        "These machines have GPUs, and the study trains on their cores" in run(capsys, *command)[1]
    )
    told = json.loads(run(capsys, *command, *gpu, "--json")[1])
    assert told["trials"] == told["quote"]["trials"] == 316
    assert told["quote"]["node_types"][1]["usd_per_hour"] == 0.204


def test_the_table_reads_well(capsys):
    """Off a terminal: tab-separated figures, then what they rest on and how to run it so."""
    _, out, _ = run(capsys, "simulate", "first-align", "--nodes", "300", "--gpus-per-node", "1")
    lines = out.splitlines()
    assert lines[1] == "trials\t316\t"
    assert "dollars\tno price\t" in lines
    assert any(line.startswith("No price for worker") for line in lines)
    assert lines[-1].endswith("for 300 add --workers 300.")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "which cluster?"),
        (("--nodes", "1", "--cluster", "x.yaml"), "which cluster?"),
        (("--cluster", "absent.yaml"), "absent.yaml: No such file"),
        (("--nodes", "1", "--gpus-per-node", "1", "--gpu", "T5"), "unknown device 'T5'"),
        (("--nodes", "1", "--share", "0.5"), "has no GPU, and a trial wants 0.5 of one"),
        (("--nodes", "1", "--boot", "soon"), "--boot soon: not a duration"),
        (("--nodes", "1", "--price", "cheap"), "--price cheap: not a price"),
        (("--nodes", "1", "--set", "resources.cpus=9.0"), "a trial of 9 cores fits on no node"),
    ],
)
def test_wrong_options_are_usage_errors(capsys, options, told):
    """Exit code 2 and one line that says what to write instead."""
    code, _, err = run(capsys, "simulate", "first-align", *options)
    assert code == 2
    assert told in err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("180s", 180), ("10min", 600), ("1.5h", 5400), ("1d", 86400)]
)
def test_durations_are_read_as_one_writes_them(text, seconds):
    """Seconds where no unit stands."""
    assert seconds_of("--boot", text) == seconds


def test_a_timeline_shows_the_slots_of_the_first_rehearsal(capsys, tmp_path):
    """A picture is written where asked; what is no picture is refused with what to write."""
    command = ("simulate", "first-align", "--nodes", "2", "--gpus-per-node", "1", "--repeats", "1")
    code, _, _ = run(capsys, *command, "--timeline", str(tmp_path / "slots.png"))
    assert code == 0
    assert (tmp_path / "slots.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = run(capsys, *command, "--timeline", str(tmp_path / "slots.doc"))
    assert code == 2
    assert "ends in .png" in err


def test_who_names_gpus_wants_them_used():
    """A study without GPUs takes whole cards where cards are made up; `--share 0` does not."""
    assert setting_of(study(), Asked(nodes=2, gpus_per_node=1))[0].gpus == 1.0
    assert setting_of(study(gpus=0.5), Asked(nodes=2, gpus_per_node=1))[0].gpus == 0.5
    assert setting_of(study(), Asked(nodes=2, gpus_per_node=1, share=0.0))[0].gpus == 0.0
    assert setting_of(study(gpus="auto"), Asked(nodes=2, gpus_per_node=1))[0].gpus == 0.25
    assert setting_of(study(gpus="auto"), Asked(nodes=2, gpus_per_node=1), 0.5)[0].gpus == 0.5
    with pytest.raises(StudyError, match="not a share"):
        setting_of(study(), Asked(nodes=2, gpus_per_node=1, share=2.0))


def test_a_rehearsal_loads_neither_torch_nor_ray():
    """In a fresh process, `sweep simulate` answers without the heavy libraries."""
    code = (
        "import sys\n"
        "from sweep.cli import main\n"
        "try:\n"
        "    main(['simulate', 'first-align', '--nodes', '2', '--repeats', '1'])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0, end.code\n"
        "heavy = {'torch', 'ray', 'transformers', 'mlflow', 'optuna', 'matplotlib'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["loaded: []"], done.stderr
