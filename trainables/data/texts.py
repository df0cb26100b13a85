"""Texts and pairs of texts -> subwords, as the tokenizer itself puts them together.

A text or pair goes through the encoder in one piece: longer ones are cut by the tokenizer
(longest first, PROTOCOLS 1.6). That shortens what is read, never what is scored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int

from trainables.data.batching import Batch
from trainables.data.cache import cached
from trainables.data.example import Example
from trainables.data.reading import read_unchanged
from trainables.spec import DataRef, EncoderRef

FORMAT = 1
"""Version of the file; part of its name."""

CHUNK = 1000
"""Examples tokenised together."""

NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class TextCorpus:
    """The examples of one file as flat arrays; S examples, P pieces.

    Attributes:
        key: `DataRef.key` of what was read.
        location: Its file, for messages.
        pieces: Piece ids, special pieces included.
        types: Which text each piece belongs to, as the tokenizer says (0 or 1).
        owned: Pieces that come from the texts: all but the special ones.
        start: First piece of each example, and `P` at the end.
        labels: Class of each example; empty in a test file without classes.
        lines: Line of each example in its file.
        n_words: Parts between white space, before anything was cut; for speeds only.
        n_cut: Examples that were too long.
    """

    key: str
    location: str
    pieces: Int[np.ndarray, " P"]
    types: Int[np.ndarray, " P"]
    owned: Bool[np.ndarray, " P"]
    start: Int[np.ndarray, " S1"]
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    n_words: int
    n_cut: int

    @property
    def n_sentences(self) -> int:
        """Examples in the file (or in the part that is used): the denominator of every metric."""
        return len(self.start) - 1


@dataclass(frozen=True, slots=True)
class Texts:
    """A corpus of texts, one window each (a `trainables.data.batching.Units`)."""

    corpus: TextCorpus
    pad: int

    @property
    def lengths(self) -> Int[np.ndarray, " S"]:
        """Pieces of each example, special ones included."""
        return np.diff(self.corpus.start)

    def collate(self, chosen: Int[np.ndarray, " s"]) -> Batch:
        """Pad the chosen examples to the longest of them; there are no words to label."""
        corpus, n = self.corpus, self.lengths[chosen]
        shape = len(chosen), int(n.max())
        real = np.arange(shape[1]) < n[:, None]
        at = np.concatenate(
            [np.arange(i, i + k) for i, k in zip(corpus.start[chosen], n, strict=True)]
        )

        def laid(values: np.ndarray, filler: int) -> np.ndarray:
            out = np.full(shape, filler, dtype=values.dtype)
            out[real] = values[at]
            return out

        return Batch(
            input_ids=laid(corpus.pieces, self.pad),
            attention_mask=real.astype(np.int64),
            owned=laid(corpus.owned, 0),
            sentence=chosen,
            chosen=chosen,
            first=np.arange(len(chosen)),
            n_words=np.zeros(len(chosen), dtype=np.int64),
            row=NOTHING,
            column=NOTHING,
            word=NOTHING,
            token_types=laid(corpus.types, 0),
        )


@lru_cache(maxsize=64)
def load_texts(ref: DataRef, encoder: EncoderRef, cache: str, max_length: int) -> TextCorpus:
    """Read one file through one tokenizer; tokenise only if nobody on this node has.

    Args:
        ref: What to read.
        encoder: Whose tokenizer; its fingerprint covers the tokenizer's files.
        cache: Folder of Arrow files, shared by all workers of a node.
        max_length: Most pieces of an example, special ones included.

    Raises:
        DataError: the file is wrong.
    """
    name = ["texts", str(FORMAT), ref.key, ref.layout, encoder.fingerprint, str(max_length)]
    table = cached(cache, "\x1f".join(name), lambda: _tokenise(ref, encoder, max_length))
    return as_texts(table, ref.key, ref.location)


def _tokenise(ref: DataRef, encoder: EncoderRef, max_length: int) -> pa.Table:
    from trainables.encoders.pretrained import load_tokenizer

    return build_texts(read_unchanged(ref), load_tokenizer(encoder), max_length)


_SCHEMA = pa.schema(
    [
        ("pieces", pa.list_(pa.int32())),
        ("types", pa.list_(pa.int8())),
        ("special", pa.list_(pa.int8())),
        ("label", pa.string()),
        ("line", pa.int64()),
        ("n_words", pa.int32()),
        ("is_cut", pa.bool_()),
    ]
)


def build_texts(examples: Sequence[Example], tokenizer: Any, max_length: int) -> pa.Table:  # noqa: ANN401 - transformers ships no types
    """Tokenise examples into a table with one row an example.

    A text without pieces (zero-width characters, say) becomes the unknown piece.
    """
    rows: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    for example, piece in zip(examples, _encoded(examples, tokenizer, max_length), strict=True):
        rows["pieces"].append(piece.ids)
        rows["types"].append(piece.type_ids)
        rows["special"].append(piece.special_tokens_mask)
        rows["label"].append(example.label)
        rows["line"].append(example.line)
        rows["n_words"].append(len(example.text.split()) + len(example.pair.split()))
        rows["is_cut"].append(bool(piece.overflowing))
    return pa.table(rows, schema=_SCHEMA)


def _encoded(examples: Sequence[Example], tokenizer: Any, max_length: int) -> Iterator[Any]:  # noqa: ANN401 - as above
    """One encoding an example."""
    cut = {"truncation": "longest_first", "max_length": max_length}
    for low in range(0, len(examples), CHUNK):
        chunk = examples[low : low + CHUNK]
        found: dict[int, Any] = {}
        for is_pair in (True, False):
            at = [i for i, example in enumerate(chunk) if bool(example.pair) == is_pair]
            if at:
                texts = [[chunk[i].text for i in at]]
                pairs = [[chunk[i].pair for i in at]] if is_pair else []
                found |= dict(zip(at, tokenizer(*texts, *pairs, **cut).encodings, strict=True))
        for i in range(len(chunk)):
            is_empty = all(found[i].special_tokens_mask)
            yield tokenizer([tokenizer.unk_token], **cut).encodings[0] if is_empty else found[i]


def as_texts(table: pa.Table, key: str, location: str) -> TextCorpus:
    """View a table of `build_texts` as flat arrays."""
    table = table.combine_chunks()

    def flat(name: str) -> np.ndarray:
        column = table.column(name).combine_chunks().flatten()
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64)

    lengths = table.column("pieces").combine_chunks().value_lengths().to_numpy()
    return TextCorpus(
        key=key,
        location=location,
        pieces=flat("pieces"),
        types=flat("types"),
        owned=flat("special") == 0,
        start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=tuple(table.column("label").to_pylist()),
        lines=tuple(table.column("line").to_pylist()),
        n_words=int(table.column("n_words").to_numpy().sum()),
        n_cut=int(table.column("is_cut").to_numpy(zero_copy_only=False).sum()),
    )
