"""Real trials of a tiny encoder in one worker, and how long it took from each to the next."""

import json
import random
from itertools import pairwise
from pathlib import Path

from sweep.ledger import Ledger
from sweep.run import run_study
from sweep.study import build_study
from trainables.encoders.tiny import tiny_encoder

WORDS = ("see", "cat", "dog", "tree", "sun", "old", "red", "now")
TAGS = ("VERB", "NOUN", "NOUN", "NOUN", "NOUN", "ADJ", "ADJ", "ADV")


def treebank(n: int, seed: int) -> str:
    """Sentences of six words."""
    rng = random.Random(seed)
    blocks = []
    for number in range(n):
        rows = []
        for place in range(1, 7):
            at = rng.randrange(len(WORDS))
            head = "0\troot" if place == 1 else "1\tdep"
            rows.append(f"{place}\t{WORDS[at]}\t_\t{TAGS[at]}\t_\t_\t{head}\t_\t_")
        blocks.append("\n".join([f"# sent_id = n{number}", *rows]) + "\n\n")
    return "".join(blocks)


def run(root: Path, trials: int) -> str:
    """Run them.

    Returns:
        JSON: seconds from the end of each trial to the end of loading of the next, all but the
        first, whose worker was cold.
    """
    encoder = tiny_encoder(root / "encoder", vocabulary=WORDS)
    data = root / "data"
    data.mkdir()
    for code, split, n in (("aa_toy", "train", 64), ("aa_toy", "dev", 16), ("aa_pud", "test", 16)):
        (data / f"{code}-ud-{split}.conllu").write_text(treebank(n, n))
    study = build_study(
        {
            "name": "warm",
            "encoder": {"model": str(encoder)},
            "data": {"root": str(data), "sources": {"aa": "aa_toy"}},
            "grid": {"task": "upos", "source": "aa"},
            "hyper": {"learning_rate": 1e-3, "batch_size": 16, "epochs": 1},
            "seeds": {"report": list(range(1, trials + 1))},
            "evaluate": {"targets": ["aa"], "naming": "{lang}_pud"},
            "storage": str(root / "store"),
            "executor": "local",
            "tracking": {"enabled": False},
        }
    )
    run_study(study, workers=1)
    rows = Ledger(study.storage).table("trials").sort_by("started").to_pylist()
    gaps = [
        (after["started"] - before["finished"]).total_seconds() + after["load_s"]
        for before, after in pairwise(rows)
    ]
    return json.dumps(gaps)
