"""`python -m trainables.toy.pretrain --to FOLDER`: make the tiny encoder that ships, from nothing.

Raw text of the invented languages -> WordPiece vocabulary -> BERT of 12 narrow layers, grown by
stacking (Gong et al. 2019, "Efficient Training of BERT by Progressively Stacking"): it starts with
3 layers, which are copied on top of themselves twice.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from trainables.encoders.base import Encoder
from trainables.encoders.pretrained import quiet
from trainables.mlm import MaskPieces, MlmHead, MlmSettings, MlmTraining
from trainables.toy.languages import VERSION
from trainables.toy.text import raw_text

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

MAX_POSITIONS = 128

SHARD_BYTES = 900_000
"""Weights are cut into files of at most so many bytes, which any code host takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that the encoder is made of; equal recipes give equal weights on equal machines.

    Attributes:
        n_lines: Lines of raw text.
        n_pieces: Size of the vocabulary.
        hidden: Width of the states.
        intermediate: Width inside the feed-forward parts.
        heads: Attention heads.
        stages: (layers, steps at that depth), in order.
        mlm: Batches, rates, masks; its steps are the sum over the stages.
    """

    n_lines: int = 30_000
    n_pieces: int = 1_000
    hidden: int = 64
    intermediate: int = 192
    heads: int = 4
    stages: tuple[tuple[int, int], ...] = ((3, 1_400), (6, 1_000), (12, 2_200))
    mlm: MlmSettings = field(
        default_factory=lambda: MlmSettings(steps=4_600, learning_rate=2e-3, chosen=0.2)
    )

    @property
    def initializer_range(self) -> float:
        """As BERT's 0.02 at a width of 768, which goes with one over the root of the width."""
        return round(0.02 * math.sqrt(768 / self.hidden), 3)


def pretrain(recipe: Recipe, folder: Path) -> Path:
    """Make the encoder and write it as `save_pretrained` would, with weights in half precision.

    Args:
        recipe: What it is made of.
        folder: Made if need be.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(raw_text(recipe.n_lines))
    _say(f"{len(lines)} lines of raw text, such as: {lines[0]}")
    tokenizer = train_tokenizer(lines, recipe.n_pieces)
    pieces = MaskPieces(
        pad=tokenizer.token_to_id("[PAD]"),
        mask=tokenizer.token_to_id("[MASK]"),
        special=tuple(tokenizer.token_to_id(piece) for piece in SPECIAL),
        n_pieces=tokenizer.get_vocab_size(),
    )
    encoded = [
        np.array(found.ids[:MAX_POSITIONS], dtype=np.int64)
        for found in tokenizer.encode_batch(lines)
    ]
    model = learn(recipe, encoded, pieces)
    _save(model, tokenizer, folder)
    (folder / "recipe.json").write_text(
        json.dumps({"version": VERSION, **asdict(recipe)}, indent=1) + "\n", encoding="utf-8"
    )
    return folder


def learn(recipe: Recipe, lines: Sequence[Int[np.ndarray, " _"]], pieces: MaskPieces) -> Any:  # noqa: ANN401 - transformers ships no types
    """Train through all stages; the transformers model of the last one."""
    first, *later = recipe.stages
    model = build_model(recipe, first[0], pieces)
    encoder = Encoder(model)
    training = MlmTraining(
        encoder=encoder,
        head=MlmHead(encoder, pieces.n_pieces, recipe.mlm.seed),
        lines=lines,
        pieces=pieces,
        settings=recipe.mlm,
    )
    report = _Reporter()
    training.run(first[1], report)
    for n_layers, steps in later:
        model = stacked(model, build_model(recipe, n_layers, pieces))
        training.deepen(Encoder(model))
        training.run(training.step + steps, report)
    return model


def build_model(recipe: Recipe, n_layers: int, pieces: MaskPieces) -> Any:  # noqa: ANN401 - transformers ships no types
    """A BERT of the recipe's width with fresh weights."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=pieces.n_pieces,
        hidden_size=recipe.hidden,
        num_hidden_layers=n_layers,
        num_attention_heads=recipe.heads,
        intermediate_size=recipe.intermediate,
        max_position_embeddings=MAX_POSITIONS,
        pad_token_id=pieces.pad,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=recipe.initializer_range,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.mlm.seed)
        return BertModel(config, add_pooling_layer=False)


def stacked(shallow: Any, deep: Any) -> Any:  # noqa: ANN401 - as above
    """Fill a deeper model with the layers of a shallow one, over and over, and all else of it.

    Args:
        shallow: Trained.
        deep: Of the same width; changed in place.

    Returns:
        `deep`.
    """
    blocks = shallow.encoder.layer
    for place, block in enumerate(deep.encoder.layer):
        block.load_state_dict(blocks[place % len(blocks)].state_dict())
    deep.embeddings.load_state_dict(shallow.embeddings.state_dict())
    return deep


def train_tokenizer(lines: Sequence[str], n_pieces: int) -> Any:  # noqa: ANN401 - tokenizers ships no types
    """WordPiece, cased, accents kept, as multilingual BERT's."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 - a piece
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(
        lines,
        trainers.WordPieceTrainer(
            vocab_size=n_pieces, special_tokens=list(SPECIAL), show_progress=False
        ),
    )
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(piece, tokenizer.token_to_id(piece)) for piece in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _save(model: Any, tokenizer: Any, folder: Path) -> None:  # noqa: ANN401 - as above
    with quiet():
        model.to(torch.float16).save_pretrained(folder, max_shard_size=SHARD_BYTES)
    for shard in folder.glob("*.safetensors"):
        shard.chmod(0o644)  # safetensors writes files that only their owner may read
    tokenizer.save(str(folder / "tokenizer.json"))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{piece[1:-1].lower()}_token": piece for piece in SPECIAL},
        "model_max_length": MAX_POSITIONS,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


class _Reporter:
    """Prints the mean loss of every hundred steps."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._began = time.monotonic()

    def __call__(self, step: int, loss: float) -> None:
        self._losses.append(loss)
        if len(self._losses) == 100:  # noqa: PLR2004 - as said
            mean, seconds = sum(self._losses) / 100, time.monotonic() - self._began
            _say(f"step {step + 1}: loss {mean:.3f}, {seconds:.0f} s")
            self._losses.clear()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Pretrain the tiny encoder that ships.")
    parser.add_argument("--to", type=Path, required=True, help="folder to write")
    parser.add_argument("--threads", type=int, default=1, help="the last bits depend on it")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    pretrain(Recipe(), given.to)


if __name__ == "__main__":
    main()
