"""A study of short trials with real training: made-up treebanks, a tiny seeded encoder."""

import random
from pathlib import Path

from trainables.encoders.tiny import tiny_encoder

NAME = "chaos"

_LEXICON = {
    "DET": ("da", "de"),
    "ADJ": ("big", "red", "old"),
    "NOUN": ("cat", "dog", "tree", "sun", "bird"),
    "VERB": ("see", "eat", "like"),
    "ADV": ("now", "here"),
    "PUNCT": (".",),
}
_PATTERN = ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN", "ADV", "PUNCT")
_ENDING = {"aa": "", "bb": "o"}
"""Two languages: the same sentences, every word with the language's own ending."""

_STUDY = """
# Does anything that dies take results with it?
name = "{name}"
executor = "tune"

[encoder]
model = "{encoder}"

[data]
root = "{data}"
sources = {{ aa = "aa_toy" }}

[grid]
task = ["upos"]
source = ["aa"]
ablation = ["ref", "reinit:1"]

[hyper]
learning_rate = 1e-3
batch_size = 8
epochs = {epochs}

[seeds]
report = {seeds}

[evaluate]
targets = ["aa", "bb"]
naming = "{{lang}}_pud"

[similarity]
states = ["fine-tuned"]
null_draws = 5

[resources]
cpus = 1.0
checkpoint_s = {checkpoint_s}

[tracking]
enabled = false
"""


def write_study(
    folder: Path, *, n_trials: int, sentences: int, epochs: int, checkpoint_s: float
) -> Path:
    """Write data, encoder and study file; the file.

    Args:
        folder: Where to.
        n_trials: Trials, half of them with a re-initialised layer.
        sentences: Training sentences.
        epochs: Passes over them.
        checkpoint_s: Seconds between two checkpoints of a trial.
    """
    for code, split, language, n, seed in (
        ("aa_toy", "train", "aa", sentences, 1),
        ("aa_toy", "dev", "aa", 40, 2),
        ("aa_pud", "test", "aa", 30, 3),
        ("bb_pud", "test", "bb", 30, 3),
    ):
        path = folder / "data" / f"UD_{code}" / f"{code}-ud-{split}.conllu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_conllu(language, n, seed), encoding="utf-8")
    encoder = tiny_encoder(folder / "encoder", n_layers=2)
    study = folder / "chaos.toml"
    text = _STUDY.format(
        name=NAME,
        encoder=encoder,
        data=folder / "data",
        epochs=epochs,
        seeds=list(range(1, n_trials // 2 + 1)),
        checkpoint_s=checkpoint_s,
    )
    study.write_text(text, encoding="utf-8")
    return study


def _conllu(language: str, n: int, seed: int) -> str:
    """Sentences; equal seeds give translations of the same ones."""
    rng = random.Random(seed)
    blocks = []
    for number in range(n):
        tags = [tag for tag in _PATTERN if tag in {"NOUN", "VERB", "PUNCT"} or rng.random() < 0.6]  # noqa: PLR2004 - a share
        lines = [f"# sent_id = n{number:05d}", "# text = made up"]
        for index, tag in enumerate(tags, start=1):
            word = rng.choice(_LEXICON[tag]) + (_ENDING[language] if tag != "PUNCT" else "")
            head = ("0", "root") if index == 1 else ("1", "dep")
            lines.append("\t".join([str(index), word, "_", tag, "_", "_", *head, "_", "_"]))
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)
