"""A study file goes in, a page comes out; what was asked before is never computed again."""

import json
import os
import random
import signal
import sqlite3
import subprocess

import pytest

FEW = ("--set", "seeds.report=[1]", "--set", 'grid.ablation=["ref","reinit:1-2"]')
LOCAL = ("--executor", "local", "--workers", "1")


def test_a_study_file_goes_in_and_a_page_comes_out(bench):
    """Run, report and MLflow agree on what was done, and a second run does nothing."""
    bench.sweep("run", *LOCAL, *FEW)
    printed = bench.sweep("report", *FEW)
    page = next((bench.folder / "results").rglob("*.html"))
    assert str(page) in printed
    text = page.read_text(encoding="utf-8")
    for row in bench.measured()["scores"]:
        assert row[0] in text  # every number leads back to its trial
    with sqlite3.connect(bench.folder / "results" / "mlflow.db") as db:
        tagged = db.execute("select value from tags where key = 'xling.trial_id'").fetchall()
    assert sorted(value for (value,) in tagged) == sorted(bench.trained())
    before = bench.measured()
    assert "0 in this run" in bench.sweep("run", *LOCAL, *FEW)
    assert bench.measured() == before


@pytest.mark.slow
def test_asking_for_more_computes_the_difference(bench):
    """A seed, an ablation and a target each add exactly their own trials or rows."""
    keep = ("--set", 'keep="best"', "--no-track")
    two = ("--set", 'evaluate.targets=["aa","bb"]')
    bench.sweep("run", *LOCAL, *FEW, *keep, *two)
    first, rows = bench.trained(), bench.measured()
    assert len(first) == 3  # the probe and two ablations

    more_seeds = ("--set", "seeds.report=[1,2]", *FEW[2:])
    bench.sweep("run", *LOCAL, *more_seeds, *keep, *two)
    second = bench.trained()
    assert first < second
    assert len(second) == 5

    bench.sweep("run", *LOCAL, "--set", "seeds.report=[1,2]", *keep, *two)
    third = bench.trained()
    assert second < third
    assert len(third) == 7

    plan = json.loads(bench.sweep("plan", "--json", *keep[:2]))
    assert (plan["train"], plan["measure"]) == (0, 7)
    bench.sweep("run", *LOCAL, *keep)  # all three targets: cc is new
    assert bench.trained() == third
    scores = bench.measured()["scores"]
    assert set(rows["scores"]) < set(scores)
    new = {row for row in scores if row[2] == "cc_pud"}
    assert len({row[0] for row in new}) == 6
    whole = bench.sweep("run", *LOCAL, "--no-track", store="at-once")
    assert "7 of 7" in whole
    assert bench.measured("at-once")["scores"] == scores


@pytest.mark.slow
def test_a_killed_driver_loses_nothing(bench):
    """Kill -9 at any moment, then the same command: the tables of an undisturbed run."""
    bench.sweep("run", *LOCAL, "--no-track", store="calm")
    rng = random.Random(20)  # the moments are drawn; each leaves another state behind
    left_behind: list[dict[str, object]] = []
    for _ in range(4):
        driver = subprocess.Popen(
            bench.command("run", "--executor", "local", "--workers", "2", "--no-track"),
            env=bench.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        for _ in range(rng.randint(1, 6)):  # so many lines of progress later
            driver.stderr.readline()
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        driver.stderr.close()
        left_behind.append(bench.commits())
    bench.sweep("run", "--executor", "local", "--workers", "2", "--no-track")
    whole = bench.commits()
    assert any(0 < len(commits) < len(whole) for commits in left_behind)  # a kill in the middle
    for commits in left_behind:
        assert commits.items() <= whole.items()  # and nothing of it was computed again
    assert bench.measured() == bench.measured("calm")


@pytest.mark.ray
def test_local_and_tune_give_the_same_rows(bench):
    """The executor is no part of a result: equal bits through both."""
    bench.sweep("run", *LOCAL, "--no-track", store="by-local")
    bench.sweep("run", "--executor", "tune", "--workers", "2", "--no-track", store="by-tune")
    assert bench.measured("by-tune") == bench.measured("by-local")


def test_wrong_data_is_refused_before_anything_is_spent(bench, toy_root, tmp_path):
    """One error with file and line, exit code 2, and no trial begun."""
    root = tmp_path / "broken"
    for source in toy_root.rglob("*.conllu"):
        copy = root / source.relative_to(toy_root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text())
    bad = root / "UD_bb_pud" / "bb_pud-ud-test.conllu"
    lines = bad.read_text().splitlines(keepends=True)
    lines[4] = lines[4].replace("\t", " ")
    bad.write_text("".join(lines))
    done = subprocess.run(
        bench.command("run", *LOCAL, *FEW, "--no-track", "--set", f"data.root={root}"),
        env=bench.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{bad}:5:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((bench.folder / "results").glob("commits/*/*"))
