"""Budget: the report of 10,000 trials x 17 targets, figures included: 20 s and 2 GB.

Run as `python -m bench.report [trials]`; prints JSON. The tables are made up (their size decides
the time, not their values), written as a store, and reported by a process of its own, so that its
memory is that of reading and reporting alone.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from analysis.layout import CURRENT, Current, Part
from analysis.pictures import start_painters
from analysis.report import write_report
from analysis.schema import CURVES, SCORES, SIMILARITY, TRIALS
from analysis.tables import Tables, write_tables
from bench.machine import machine
from sweep.ledger import Ledger
from sweep.sparing import spare_pandas

ENCODERS = 5
TASKS = {"upos": ("accuracy", "f1_macro", "f1_micro"), "parsing": ("las", "uas", "las_full"),
         "ner": ("f1_lenient", "f1_strict", "accuracy")}  # fmt: skip
SOURCES = ("en", "ru", "ar")
TARGETS = ("en", "ru", "ar", "zh", "cs", "fi", "fr", "id", "it", "ja", "de", "hi", "pl", "pt",
           "sv", "es", "tr")  # fmt: skip
ABLATIONS = ("ref", "reinit:1", "reinit:2", "reinit:1-2", "reinit:3-4", "reinit:5-6", "reinit:7-8",
             "reinit:9-10", "reinit:11-12", "reinit:1-3", "reinit:4-6", "reinit:7-9",
             "reinit:10-12")  # fmt: skip
MEASURES = ("linear-cka", "debiased-cka")
SEEDS, POINTS, LAYERS, EPOCHS = 5, 13, 13, 6


def made_up(n: int) -> Tables:
    """Tables of `n` trials: for each cell 12 points of a search on one seed, then 5 seeds."""
    rng = np.random.default_rng(0)
    trials = _trials(n)
    task = np.array([str(row["task"]) for row in trials])
    ids = pa.array([row["trial_id"] for row in trials], pa.string())
    curves = {"step": 100, "epoch": 1, "loss": 0.5, "dev_value": 0.9, "learning_rate": 5e-5}
    metric = [TASKS[name][0] for name in task]
    points = np.repeat(np.arange(n), EPOCHS)
    table = _table(CURVES, ids, points, curves | {"dev_metric": pa.array(metric).take(points)})
    return Tables(
        pa.Table.from_pylist(trials, schema=TRIALS),
        _scores(ids, task, rng),
        _similarity(ids, [str(row["source"]) for row in trials], rng),
        table,
    )


def _trials(n: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for point in range(SEEDS + POINTS - 1):
        for encoder in range(ENCODERS):
            for task in TASKS:
                for source in SOURCES:
                    for ablation in ABLATIONS:
                        hyper = {"learning_rate": 1e-5 * (1 + max(0, point - SEEDS + 1)),
                                 "batch_size": 16, "epochs": 6}  # fmt: skip
                        seed = point if point < SEEDS else 0
                        rows.append(_trial(len(rows), encoder, task, source, ablation, seed, hyper))
    return rows[:n]


def _trial(  # noqa: PLR0917 - one row, from the coordinates of its grid
    index: int,
    encoder: int,
    task: str,
    source: str,
    ablation: str,
    seed: int,
    hyper: dict[str, float],
) -> dict[str, object]:
    trial_id, name = f"{index:016x}", f"encoder-{encoder}"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    train = {"code": f"{source}_ud", "language": source, "split": "train", "location": "x.conllu",
             "fingerprint": f"sha256:{source}"}  # fmt: skip
    spec = {"task": task, "encoder": {"name": name, "fingerprint": name}, "source": source,
            "train": train, "ablation": ablation, "hyper": hyper, "seed": seed,
            "options": {"max_length": 512}, "precision": "fp32"}  # fmt: skip
    return {
        "trial_id": trial_id, "commit_id": trial_id, "kind": "train", "status": "done",
        "study": "made-up", "task": task, "encoder": name, "encoder_fingerprint": name,
        "source": source, "train": f"{source}_ud", "ablation": ablation, "seed": seed,
        "cell": f"{name}{task}{source}{ablation}", "hyper": json.dumps(hyper),
        "spec": json.dumps(spec), "attempt": 1, "best_epoch": 3, "device": "cuda", "threads": 1,
        "host": f"node-{index % 16}", "started": now, "finished": now, "load_s": 1.0,
        "train_s": 300.0, "evaluate_s": 20.0, "similarity_s": 2.0, "peak_memory": 4_000_000_000,
        "git_commit": "0123456789", "versions": '{"torch": "2.9.0"}',
    }  # fmt: skip


def _scores(ids: pa.Array, task: np.ndarray, rng: np.random.Generator) -> pa.Table:
    """17 targets x 3 metrics, and source dev by the first metric."""
    n, k = len(ids), 3 * len(TARGETS) + 1
    rows = np.repeat(np.arange(n), k)
    at = np.tile(np.arange(k), n)
    is_dev, target = at == k - 1, np.minimum(at // 3, len(TARGETS) - 1)
    names = [name for metrics in TASKS.values() for name in metrics]
    place = np.array([list(TASKS).index(name) for name in task])[rows] * 3
    language = pa.array(TARGETS).take(target)
    base = np.where(is_dev, 0.95, 0.9 - 0.03 * target)
    return _table(SCORES, ids, rows, {
        "split": pa.array(["test", "dev"]).take(is_dev.astype(int)),
        "treebank": pa.array([f"{t}_pud" for t in TARGETS]).take(target),
        "language": language,
        "data_key": pa.array([f"sha256:{t}" for t in TARGETS]).take(target),
        "metric": pa.array(names).take(place + np.where(is_dev, 0, at % 3)),
        "value": np.clip(base + rng.normal(0, 0.01, len(rows)), 0, 1),
        "n": np.full(len(rows), 20_000),
    })  # fmt: skip


def _similarity(ids: pa.Array, sources: list[str], rng: np.random.Generator) -> pa.Table:
    """16 pairs x 13 states; every second trial by two measures."""
    n, k = len(ids), len(TARGETS) * LAYERS
    both = np.concatenate([np.arange(n), np.arange(0, n, 2)])
    rows, at = np.repeat(both, k), np.tile(np.arange(k), len(both))
    which = np.repeat(np.arange(len(both)) >= n, k).astype(int)
    target, layer = at // LAYERS, at % LAYERS
    source = np.array([TARGETS.index(name) for name in sources])[rows]
    kept = np.flatnonzero(target != source)
    rows, target, layer, source, which = (
        part[kept] for part in (rows, target, layer, source, which)
    )
    keys = pa.array([f"sha256:{name}" for name in TARGETS])
    value = 0.9 - 0.02 * target - 0.01 * np.abs(layer - 6) + rng.normal(0, 0.01, len(rows))
    return _table(SIMILARITY, ids, rows, {
        "state": "fine-tuned",
        "source": pa.array(TARGETS).take(source),
        "target": pa.array(TARGETS).take(target),
        "source_key": keys.take(source),
        "target_key": keys.take(target),
        "layer": layer,
        "measure": pa.array(MEASURES).take(which),
        "value": value,
        "n": 1000,
        "null_mean": 0.3,
        "null_95": 0.32,
        "options": '{"kernel": "linear"}',
    })  # fmt: skip


def _table(
    schema: pa.Schema, ids: pa.Array, rows: Int[np.ndarray, " rows"], columns: dict[str, object]
) -> pa.Table:
    """Columns of a schema; a plain value stands in every row."""
    own = ids.take(pa.array(rows))
    whole = {"trial_id": own, "commit_id": own} | columns
    arrays = []
    for field in schema:
        value = whole[field.name]
        if not isinstance(value, (pa.Array, np.ndarray)):
            value = pa.repeat(pa.scalar(value, field.type), len(rows))
        arrays.append(pa.array(value).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def fill(folder: Path, tables: Tables) -> None:
    """Make a store of one compacted part."""
    part = Part("000001-00000000", len(tables.trials))
    write_tables(tables, folder / "tables" / part.name)
    (folder / CURRENT).write_text(Current(1, (part,)).to_json(), encoding="utf-8")


def measure(folder: Path) -> dict[str, object]:
    """Open a store as `sweep report` does, and write its report, in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    spare_pandas()
    with start_painters(ENCODERS * len(TASKS) * len(SOURCES)) as painters:
        tables = Ledger(str(folder)).tables(is_lean=True)
        read_s = time.perf_counter() - wall
        report = write_report(
            tables, folder / "report", title="made up", targets=TARGETS, painters=painters
        )
    theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "cpu_of_painters_s": round(theirs.ru_utime + theirs.ru_stime, 1),
        "read_s": round(read_s, 1),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "files": len(report.files),
        "figures": sum(path.suffix == ".png" for path in report.files),
        "page_bytes": report.page.stat().st_size,
    }


def bench(n: int) -> dict[str, object]:
    """Make tables of `n` trials, and have another process read and report them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = made_up(n)
        fill(folder, tables)
        rows = {key: table.num_rows for key, table in tables.by_name().items()}
        del tables
        command = [sys.executable, "-m", "bench.report", "--measure", name]
        child = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves; its complaints go to ours
    if child.returncode:
        raise SystemExit(f"the report's process ended with {child.returncode}; see above")
    found: dict[str, object] = json.loads(child.stdout)
    return {
        "rows": rows,
        **found,
        "budget": {"wall_s": 20, "peak_memory_bytes": 2 * 1024**3},
        **machine("pyarrow", "numpy", "scipy", "matplotlib"),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))  # noqa: T201 - its output
    else:
        print(json.dumps(bench(int(sys.argv[1]) if len(sys.argv) > 1 else 9_945), indent=1))  # noqa: T201 - its output
