"""Settings shared by all tests, a made-up family of treebanks, and where the shared data lie."""

import os
import random
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "agg")

LEXICON = {
    "DET": ["da", "de"],
    "ADJ": ["big", "red", "old"],
    "NOUN": ["cat", "dog", "tree", "sun", "bird"],
    "VERB": ["see", "eat", "like"],
    "ADV": ["now", "here"],
    "PUNCT": ["."],
}
PATTERN = ["DET", "ADJ", "NOUN", "VERB", "DET", "NOUN", "ADV", "PUNCT"]
ENDING = {"aa": "", "bb": "o", "cc": "ik"}
"""Three toy languages: the same sentences, every word with the language's own ending."""


def conllu(language: str, n: int, *, seed: int, order: list[int] | None = None) -> str:
    """A treebank of `n` sentences; equal seeds give translations of the same sentences."""
    rng = random.Random(seed)
    blocks = []
    for number in range(n):
        tags = [tag for tag in PATTERN if tag in ("NOUN", "VERB", "PUNCT") or rng.random() < 0.6]
        words = [
            rng.choice(LEXICON[tag]) + (ENDING[language] if tag != "PUNCT" else "") for tag in tags
        ]
        rows = [
            "\t".join(
                [str(i), word, "_", tag, "_", "_", *(("0", "root") if i == 1 else ("1", "dep"))]
            )
            + "\t_\t_"
            for i, (word, tag) in enumerate(zip(words, tags, strict=True), start=1)
        ]
        head = [f"# sent_id = n{number:05d}", f"# text = {' '.join(words)}"]
        blocks.append("\n".join(head + rows) + "\n\n")
    return "".join(blocks[i] for i in (order or range(n)))


@pytest.fixture(scope="session")
def made_up_trees():
    """`conllu`, for tests that lay out files of their own."""
    return conllu


@pytest.fixture(scope="session")
def toy_root(tmp_path_factory) -> Path:
    """Treebanks aa_toy (train, dev) and aa_pud, bb_pud, cc_pud (parallel) below one folder."""
    root = tmp_path_factory.mktemp("toy-data")
    for code, split, language, n, seed in (
        ("aa_toy", "train", "aa", 60, 1),
        ("aa_toy", "dev", "aa", 20, 2),
        ("aa_pud", "test", "aa", 16, 3),
        ("bb_pud", "test", "bb", 16, 3),
        ("cc_pud", "test", "cc", 16, 3),
    ):
        # cc keeps its parallel sentences in another order, as Icelandic-PUD does.
        order = list(reversed(range(n))) if language == "cc" else None
        path = root / f"UD_{code}" / f"{code}-ud-{split}.conllu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(conllu(language, n, seed=seed, order=order), encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and models; tests that need it are skipped where it is absent."""
    default = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("XLING_SHARED", default))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set XLING_SHARED)")
    return folder
