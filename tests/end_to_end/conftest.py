"""A whole study on toy treebanks and a tiny encoder, run through the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweep.ledger import Ledger
from trainables.encoders.tiny import tiny_encoder

# Lets tests of this folder import `readme` beside them, and the server on loopback.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "sweep")]

STUDY = """
# Question: does the machinery agree with itself?
name = "toy"
protocol = "first-align"

[encoder]
model = "{encoder}"

[data]
root = "{data}"
sources = {{ aa = "aa_toy" }}

[grid]
task = ["upos"]
source = ["aa"]
ablation = ["ref", "reinit:1-2", "reinit:3-4"]

[hyper]
learning_rate = 5e-3
batch_size = 8
epochs = 3

[seeds]
report = [1, 2]

[evaluate]
targets = ["aa", "bb", "cc"]
"""

MEASURED = {
    "scores": ("trial_id", "split", "treebank", "language", "data_key", "metric", "value", "n"),
    "similarity": (
        *("trial_id", "state", "source", "target", "source_key", "target_key", "layer"),
        *("measure", "value", "n", "null_mean", "null_95", "options"),
    ),
    "curves": ("trial_id", "step", "epoch", "loss", "dev_metric", "dev_value", "learning_rate"),
}
"""Columns that hold what was measured: the same in any two runs of a study."""


class Bench:
    """A study file, a store, and the command line between them."""

    def __init__(self, folder: Path, study: Path) -> None:
        self.folder, self.study = folder, study

    def command(self, verb: str, *arguments: str, store: str = "results") -> list[str]:
        """The words of one command."""
        sweep = str(Path(sys.executable).with_name("sweep"))
        place = ["--storage", str(self.folder / store)]
        return [sweep, verb, str(self.study), *place, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """A cache of its own, and plain lines."""
        return os.environ | {"XLING_CACHE": str(self.folder / "cache"), "NO_COLOR": "1"}

    def sweep(self, verb: str, *arguments: str, store: str = "results", expect: int = 0) -> str:
        """Run one command to its end; its standard output."""
        done = subprocess.run(
            self.command(verb, *arguments, store=store),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expect, done.stderr + done.stdout
        return done.stdout

    def measured(self, store: str = "results") -> dict[str, list[tuple[object, ...]]]:
        """All that a store's tables say was measured, in one order."""
        ledger = Ledger(str(self.folder / store))
        return {
            name: sorted(
                zip(*(ledger.table(name).column(c).to_pylist() for c in columns), strict=True),
                key=repr,
            )
            for name, columns in MEASURED.items()
        }

    def trained(self, store: str = "results") -> set[str]:
        """Trials that were ever trained into a store."""
        rows = Ledger(str(self.folder / store)).table("trials").to_pylist()
        return {row["trial_id"] for row in rows if row["kind"] == "train"}

    def commits(self, store: str = "results") -> dict[str, object]:
        """Every committed trial and when it ended, to the microsecond."""
        rows = Ledger(str(self.folder / store)).table("trials").to_pylist()
        return {row["commit_id"]: row["finished"] for row in rows}


@pytest.fixture
def bench(tmp_path, toy_root) -> Bench:
    encoder = tiny_encoder(tmp_path / "encoder", n_layers=4)
    study = tmp_path / "toy.toml"
    study.write_text(STUDY.format(encoder=encoder, data=toy_root))
    return Bench(tmp_path, study)
