"""A study that searches, run through the local executor and a real store, killed and run again."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import run_samples
import search_samples as made
from rich.console import Console

from sweep import plan as planning
from sweep.imagined import counted
from sweep.ledger import Ledger
from sweep.opened import open_study
from sweep.progress import Board
from sweep.run import RunSummary, run_study
from sweep.screen import plan_lines, run_lines, status_lines, status_rows
from sweep.study import Study
from sweep.work import Work

SEARCH = made.TPE | {"prune": "asha"}


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick_disk) -> None:  # noqa: ARG001
    """Find made-up files instead of real ones, and keep caches in the test's own folder."""
    monkeypatch.setattr("sweep.opened.resolve", made.resolve)
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def run(study: Study, workers: int = 1) -> RunSummary:
    """Run a study in this process."""
    console = Console(file=io.StringIO(), width=200)
    return run_study(study, workers=workers, console=console, worker=made.WORKER)


def ends(store: object) -> list[str]:
    """The commits of a store; those of failures have a random end, which is left out."""
    rows = Ledger(str(store)).table("trials").to_pylist()
    return sorted(row["commit_id"].partition(".failed")[0] for row in rows)


def states(store: Path) -> dict[str, int]:
    """How many trials ended how, by phase and status."""
    rows = Ledger(str(store)).table("trials").to_pylist()
    found: dict[str, int] = {}
    for row in rows:
        name = f"{row['phase']} {row['status']}"
        found[name] = found.get(name, 0) + 1
    return found


def test_a_search_runs_to_its_report_and_then_nothing_is_left(tmp_path: Path) -> None:
    """Eight points and three seeds a cell; the second run runs nothing, pruned ones included."""
    study = made.study_of(tmp_path, SEARCH)
    summary = run(study)
    assert summary.total == 2 * (8 + 3)
    assert summary.pruned > 0
    assert summary.done + summary.pruned + summary.void == summary.total
    assert summary.is_complete
    before = run_samples.runs(tmp_path)
    again = run(study)
    assert again.is_complete
    assert (again.already, again.pruned, again.void) == (
        summary.done,
        summary.pruned,
        summary.void,
    )
    assert run_samples.runs(tmp_path) == before
    found = states(tmp_path)
    assert found["report done"] == 6
    assert found["search pruned"] == summary.pruned


def test_pruned_trials_are_run_in_full_without_pruning(tmp_path: Path) -> None:
    """What was stopped early is no result of a search that stops nothing."""
    grid = made.GRID | {"prune": "asha"}
    first = run(made.study_of(tmp_path, grid))
    assert first.pruned > 0
    second = run(made.study_of(tmp_path, made.GRID))
    assert second.done == first.pruned
    assert second.is_complete


def test_trials_are_told_from_the_ledger(tmp_path: Path) -> None:
    """A grid over points that another search has tried runs only the others."""
    run(made.study_of(tmp_path, made.GRID | {"learning_rate": [1e-4]}))
    before = len(run_samples.runs(tmp_path))
    summary = run(made.study_of(tmp_path, made.GRID))
    tried = run_samples.runs(tmp_path)[before:]
    assert summary.already == 4
    assert (
        len(tried) == summary.done == 2 * 4 + 6
    )  # two rates more, and the seeds of another winner


def test_more_trials_go_on_where_the_search_stopped(tmp_path: Path) -> None:
    """Eight points become twelve: the first eight are those of before."""
    run(made.study_of(tmp_path, made.TPE))
    before = run_samples.runs(tmp_path)
    summary = run(made.study_of(tmp_path, made.TPE | {"trials": 12}))
    assert summary.already + summary.void >= 2 * 8
    assert not set(before) & set(run_samples.runs(tmp_path)[len(before) :])


@pytest.mark.slow
def test_a_killed_driver_loses_no_point(tmp_path: Path) -> None:
    """Kill -9 in the middle of a trial, then the same command: the trials of a quiet run."""
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    for folder in (calm, wild):
        folder.mkdir()
    run(made.study_of(calm, SEARCH))
    (wild / "kill-at").write_text("9")
    code = (
        "import sys, search_samples as made, sweep.opened, io;"
        "sweep.opened.resolve = made.resolve;"
        "from sweep.run import run_study; from rich.console import Console;"
        "from pathlib import Path; import json;"
        "run_study(made.study_of(Path(sys.argv[1]), json.loads(sys.argv[2])), workers=1,"
        "console=Console(file=io.StringIO()), worker=made.WORKER)"
    )
    paths = [str(Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", code, str(wild), json.dumps(SEARCH)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr.decode()
    summary = run(made.study_of(wild, SEARCH))
    assert summary.is_complete
    assert ends(calm) == ends(wild)
    assert sorted(run_samples.runs(calm)) == sorted(set(run_samples.runs(wild)))
    assert len(run_samples.runs(wild)) == len(run_samples.runs(calm)) + 1


@pytest.mark.slow
def test_a_search_in_a_bucket_is_that_in_a_folder(bucket: str, tmp_path: Path) -> None:
    """Asks, prunings and winners are written to S3 and read from there as from a disk."""
    folder = tmp_path / "folder"
    folder.mkdir()
    asked = [run(made.study_of(store, SEARCH)) for store in (bucket, folder)]
    assert asked[0].pruned > 0
    assert [one.is_complete for one in asked] == [True, True]
    assert ends(bucket) == ends(folder)
    again = run(made.study_of(bucket, SEARCH))
    assert (again.is_complete, again.already) == (True, asked[0].done)
    more = run(made.study_of(bucket, SEARCH | {"trials": 10}))
    assert more.is_complete
    assert set(ends(folder)) < set(ends(bucket))


def test_a_point_that_cannot_be_trained_is_void(tmp_path: Path) -> None:
    """A rate that diverges is tried once, shown, and neither retried nor in the way."""
    study = made.study_of(tmp_path, {"method": "grid", "learning_rate": [1e-3, 0.09]})
    summary = run(study)
    assert (summary.void, summary.failed) == (2, {})
    assert summary.is_complete
    assert any("Cannot be trained: 2 points" in line for line in run_lines(summary))
    opened = open_study(study)
    told = status_lines(opened.plan(), opened.failures())
    assert sum(line.startswith("Cannot be trained: ") and "diverged" in line for line in told) == 2
    n = len(run_samples.runs(tmp_path))
    assert run(study).is_complete
    assert len(run_samples.runs(tmp_path)) == n


def test_a_cell_without_winner_leaves_the_study_incomplete(tmp_path: Path) -> None:
    """Where every point fails there is nothing to report, and the run says so."""
    study = made.study_of(tmp_path, {"method": "grid", "learning_rate": [0.08, 0.09]})
    summary = run(study)
    assert not summary.is_complete
    assert summary.left == 6


def test_plan_and_status_tell_searching_from_reporting(tmp_path: Path) -> None:
    """Before: 16 trials only search and 6 wait for them. After: searched, pruned, reported."""
    study = made.study_of(tmp_path, SEARCH)
    lines = plan_lines(counted(study))
    assert "2 cells, 22 trials: 22 to train" in lines[0]
    assert "16 trials of these only search; 22 wait for what others find." in lines
    summary = run(study)
    opened = open_study(study)
    made_plan = opened.plan()
    header, *_ = status_rows(made_plan, opened.failures())
    assert header == ["task", "ablation", "en"]
    assert f"{summary.pruned} trials stopped early" in "\n".join(
        status_lines(made_plan, opened.failures())
    )
    told = planning.as_json(made_plan)
    assert (told["search"], told["open"], told["train"]) == (16, 0, 0)
    _, rows = status_rows(made_plan, opened.failures())
    assert all("search 8/8" in row[2] and row[2].endswith("3/3 done") for row in rows)


def test_added_seeds_are_run_and_reported(tmp_path: Path) -> None:
    """A study with seeds.until runs the first seeds, decides, and a second run adds nothing."""
    until = {"half_width": 0.0005, "max": 6}
    study = made.study_of(tmp_path, {}, seeds={"report": [1, 2, 3], "until": until})
    summary = run(study)
    assert summary.is_complete
    assert run(study).done == 0
    assert len(open_study(study).reported) == summary.total


@pytest.mark.parametrize("is_searched", [False, True])
def test_what_was_known_before_counts_neither_for_nor_against(
    tmp_path: Path, is_searched: bool
) -> None:
    """A study with seeds.until that goes on where another stopped counts what is left, and that."""
    search = SEARCH if is_searched else {}
    first = run(made.study_of(tmp_path, search, seeds={"report": [1, 2]}))
    until = {"half_width": 0.0005, "max": 6}
    study = made.study_of(tmp_path, search, seeds={"report": [1, 2, 3], "until": until})
    opened = open_study(study)
    work, board = Work(opened), Board(began=0.0)
    n_left = len(opened.trials) - first.total
    assert not work.schedule.is_done()
    work.show_on(board)
    assert n_left > 0
    assert work.schedule.total == board.sum.total == n_left
    summary = run(study)
    assert summary.is_complete
    assert summary.done >= n_left  # others may have been asked for on the way
    assert summary.total == first.total + summary.done
