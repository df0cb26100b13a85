"""How much there is to read: an encoder's shape and the pieces of a file, counted or assumed."""

import json
import tomllib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from trainables.data.treebanks import part_of
from trainables.encoders.fingerprint import folder_of
from trainables.spec import DataRef, EncoderRef

PIECES_PER_WORD = 1.5
"""Of multilingual vocabularies, over the languages of PUD; English has about 1.2, Finnish 2."""

SPECIAL = 2
"""Pieces that an encoder puts around each sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What of an encoder decides its cost.

    Attributes:
        layers: Transformer blocks.
        hidden: Width.
        inner: Width of the feed-forward part.
        vocabulary: Rows of the embedding table.
        is_known: Read or listed; else assumed to be like a base-size encoder.
    """

    layers: int
    hidden: int
    inner: int
    vocabulary: int
    is_known: bool = True

    @property
    def block(self) -> float:
        """Weights of one block's matrices."""
        return 4.0 * self.hidden**2 + 2.0 * self.hidden * self.inner


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What of a file decides its cost.

    Attributes:
        sentences: How many.
        words: How many in all of them.
        is_counted: In the file itself; else listed or assumed.
    """

    sentences: float
    words: float
    is_counted: bool = False

    @property
    def pieces(self) -> float:
        """Pieces that the encoder reads, padding left out."""
        return PIECES_PER_WORD * self.words + SPECIAL * self.sentences


def shape_of(encoder: EncoderRef) -> Shape:
    """The shape that `config.json` says, here or in the hub's cache; else the one listed."""
    config = _config(encoder)
    if config is not None:
        hidden = _first(config, "hidden_size", "dim", "d_model") or 768
        return Shape(
            layers=encoder.n_layers,
            hidden=hidden,
            inner=_first(config, "intermediate_size", "hidden_dim", "d_ff") or 4 * hidden,
            vocabulary=_first(config, "vocab_size") or 100_000,
        )
    listed = _table()["encoders"].get(encoder.name.rstrip("/").rpartition("/")[2])
    layers, hidden, inner, vocabulary = listed or (12, 768, 3072, 120_000)
    return Shape(
        layers=layers,
        hidden=hidden,
        inner=inner,
        vocabulary=vocabulary,
        is_known=listed is not None,
    )


def size_of(ref: DataRef) -> Size:
    """Sentences and words of a file, or of the part of it that is meant."""
    words = _words(ref.location) if ref.location else None
    if words is not None:
        used = words[ref.skip :][: ref.limit]
        return Size(sentences=len(used), words=sum(used), is_counted=True)
    whole = _listed(ref.code, ref.split)
    if not whole.sentences:
        return whole
    left = max(0.0, whole.sentences - ref.skip)
    taken = left if ref.limit is None else min(left, ref.limit)
    return Size(sentences=taken, words=whole.words * taken / whole.sentences)


@cache
def _words(path: str) -> "array[int] | None":
    """Words of each sentence of a file; None for one that is not here.

    CoNLL-U lines begin with a whole number where they are a word. Other layouts have a word a line
    and blank lines between sentences, or an example a line.
    """
    sentences, examples = array("l"), array("l")
    words = blanks = 0
    is_trees = path.endswith(".conllu")
    try:
        with Path(path).open("rb") as file:
            for line in file:
                if line.isspace():
                    blanks += 1
                    sentences.append(words)
                    words = 0
                elif not is_trees:
                    words += 1
                    examples.append(len(line.split()))
                elif line.partition(b"\t")[0].isdigit():
                    words += 1
    except OSError:
        return None
    if words:
        sentences.append(words)
    return sentences if is_trees or blanks > len(examples) / 200 else examples


def _listed(code: str, split: str) -> Size:
    """What the table says of a file."""
    table = _table()
    name, start, end = part_of(code)
    name = name.partition("@")[0]
    family = name.partition("-")[0].partition(":")[0]
    if family in table["families"]:
        sentences, words = table["families"][family][("train", "dev", "test").index(split)]
    else:
        ending = next((pair for key, pair in table["endings"].items() if name.endswith(key)), None)
        sentences, words = ending or table.get(split, {}).get(name) or table["default"][split]
    if start or end is not None:
        part = max(0, min(sentences, sentences if end is None else end) - start)
        sentences, words = part, words * part / sentences
    return Size(sentences=sentences, words=words)


def _config(encoder: EncoderRef) -> Mapping[str, Any] | None:
    """`config.json` of an encoder that is here; None for one that is not."""
    path: str | Path | None = folder_of(encoder.location or encoder.name) / "config.json"
    if encoder.revision:
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(encoder.location, "config.json", revision=encoder.revision)
        path = cached if isinstance(cached, str) else None
    try:
        found = json.loads(Path(path).read_text("utf-8")) if path else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _first(config: Mapping[str, Any], *keys: str) -> int:
    return next((int(config[key]) for key in keys if isinstance(config.get(key), int)), 0)


@cache
def _table() -> dict[str, Any]:
    text = resources.files("sweep.pricing").joinpath("sizes.toml").read_text("utf-8")
    return tomllib.loads(text)
