"""Budgets: rerun of 10,000 finished trials 5 s, plan of 100,000 cells 10 s, a warm start 0.3 s.

Run as `python -m bench.scale [--trials 10000 --cells 100000]`; prints JSON. Each command runs in a
process of its own, imports included; processor seconds stand beside wall seconds, as others on the
same cores stretch only these. The finished store is made up, but committed and laid out by our own
code. Warm starts are those of real trials of a tiny encoder, one after the other in one worker.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.layout import Current, commit_ids, read_commits
from bench.machine import machine
from bench.madeup import result, study_of, write_files
from sweep.commit import commit_result
from sweep.compact import _publish
from sweep.jobs import jobs_left
from sweep.ledger import Ledger
from sweep.opened import open_study
from sweep.storage import Store
from sweep.study import Study
from trainables.spec import CurvePoint

BUDGET = {"rerun_s": 5, "plan_of_100000_cells_s": 10, "warm_start_s": 0.3}

POINT = CurvePoint(
    step=1, epoch=1, loss=1.0, dev_metric="accuracy", dev_value=0.9, learning_rate=1e-4
)


def finished_store(study: Study) -> float:
    """A store in which every trial of a study is done; returns the seconds it took to make.

    One trial is committed by our own code; its rows are then repeated under the ids of all others,
    and put into tables as a compaction would.
    """
    began = time.perf_counter()
    opened = open_study(study)
    store, now = Store(opened.store), datetime.now(UTC)
    job = jobs_left(opened)[0]
    commit_result(job, result(job, POINT), now, now)
    one = read_commits(store, commit_ids(store.files("commits")), whole=True)
    ids = list(opened.trial_ids)
    tables = {name: _repeated(rows, ids) for name, rows in one.tables.items()}
    _publish(store, Current.read(store), tables, len(ids), lambda: None)
    store.delete_folder("commits")
    return time.perf_counter() - began


def _repeated(rows: pa.Table, ids: list[str]) -> pa.Table:
    """The rows of one trial, once for each id."""
    many = rows.take(pa.array(np.tile(np.arange(len(rows)), len(ids))))
    own = pa.array(np.repeat(np.array(ids, object), len(rows)), pa.string())
    for name in ("trial_id", "commit_id"):
        at = many.schema.get_field_index(name)
        many = many.set_column(at, many.schema.field(at), own)
    return many


def as_file(study: Study, path: Path) -> str:
    """The study as a file for the command line (TOML takes JSON's lists and strings)."""
    lines = [f"name = {json.dumps(study.name)}", f"storage = {json.dumps(study.storage)}"]
    for name in ("encoder", "data", "grid", "hyper", "seeds", "evaluate", "similarity"):
        section = getattr(study, name).model_dump(exclude_defaults=True, mode="json")
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in section.items() if value is not None]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def timed(*arguments: str) -> dict[str, float]:
    """Wall and processor seconds, and peak memory, of one command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    command = [sys.executable, "-c", "from sweep.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    wall = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"sweep {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "peak_memory_bytes": after.ru_maxrss * 1024,
    }


def finished(n: int, root: Path) -> dict[str, object]:
    """Commands on a finished study of `n` trials."""
    write_files(root)
    study = study_of(root, n, tracking={"enabled": False})
    made_s = finished_store(study)
    file = as_file(study, root / "study.toml")
    ledger_s = time.perf_counter()
    Ledger(study.storage)
    return {
        "store_made_s": round(made_s, 1),
        "ledger_s": round(time.perf_counter() - ledger_s, 2),
        "rerun": timed("run", file, "--no-track"),
        "status": timed("status", file),
        "plan": timed("plan", file),
    }


def large_plan(cells: int, root: Path) -> dict[str, object]:
    """The plan of a study of so many cells, on real files and an empty store."""
    study = large_study(cells, root)
    told = timed("plan", as_file(study, root / "cells.toml"))
    grid = study.grid
    return {"cells": len(grid.task) * len(grid.source) * len(grid.ablation), **told}


def large_study(cells: int, root: Path) -> Study:
    """Two tasks, up to 100 sources, and as many ablations as it takes."""
    write_files(root)
    sources = [f"{a}{b}" for a in "abcdefghij" for b in "abcdefghij"][: max(1, cells // 20)]
    for code in sources:
        for split in ("train", "dev"):
            shutil.copy(
                root / "data" / f"en_ewt-ud-{split}.conllu",
                root / "data" / f"{code}_made-ud-{split}.conllu",
            )
    names = ["ref", *(f"reinit:{_blocks(i)}" for i in range(1, cells // (2 * len(sources))))]
    return study_of(
        root,
        1,
        ablations=names,
        grid={"task": ["upos", "parsing"], "source": sources, "ablation": names},
        data={"root": str(root / "data"), "sources": {code: f"{code}_made" for code in sources}},
        encoder={"model": str(_deep(root))},
        similarity={"measures": ["linear-cka"], "states": []},
    )


def _blocks(i: int) -> str:
    """A set of blocks of its own for each number: its binary digits."""
    return ",".join(str(bit + 1) for bit in range(i.bit_length()) if i >> bit & 1)


def _deep(root: Path) -> Path:
    """An encoder of 20 blocks: it has a million sets of them."""
    folder = root / "encoder"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 20}))
    return folder


def warm_start(n: int, root: Path) -> dict[str, object]:
    """Seconds from the end of a real trial to the training of the next, in one worker process."""
    script = (
        "import sys; from pathlib import Path; from bench.warm import run; "
        "print(run(Path(sys.argv[1]), int(sys.argv[2])))"
    )
    command = [sys.executable, "-c", script, str(root), str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode:
        raise SystemExit(f"the warm start failed:\n{done.stderr[-3000:]}")
    gaps: list[float] = json.loads(done.stdout.splitlines()[-1])
    return {
        "trials": n,
        "median_s": round(statistics.median(gaps), 3),
        "most_s": round(max(gaps), 3),
    }


def main() -> None:
    """All parts; JSON on standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--warm", type=int, default=6)
    options = parser.parse_args()
    parts = {"finished": (finished, options.trials), "plan": (large_plan, options.cells),
             "warm_start": (warm_start, options.warm)}  # fmt: skip
    found: dict[str, object] = {}
    for name, (part, size) in parts.items():
        if size:
            with tempfile.TemporaryDirectory() as root:
                found[name] = part(size, Path(root))
    report = {"trials": options.trials, **found, "budget": BUDGET, **machine("pyarrow", "pydantic")}
    print(json.dumps(report, indent=1))  # noqa: T201 - its output


if __name__ == "__main__":
    main()
