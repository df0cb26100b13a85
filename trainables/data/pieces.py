"""How often each piece of a tokenizer's vocabulary occurs in a file, whole and uncut (D-15).

Special pieces are not counted; the unknown piece is one like the others, and stands for a word
without pieces, as it does in training.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from trainables.data.cache import cached
from trainables.data.example import Example
from trainables.data.reading import read_unchanged
from trainables.data.sentence import Sentence
from trainables.data.subwords import vocabulary
from trainables.spec import DataRef, EncoderRef

FORMAT = 1
"""Version of the file; part of its name."""

CHUNK = 10_000
"""Words or texts tokenised together."""


@dataclass(frozen=True, slots=True)
class PieceCounts:
    """The pieces of a file.

    Attributes:
        pieces: Ids of those that occur, rising.
        counts: How often each does.
    """

    pieces: Int[np.ndarray, " types"]
    counts: Int[np.ndarray, " types"]


def piece_counts(ref: DataRef, encoder: EncoderRef, cache: str) -> PieceCounts:
    """Count the pieces of a file; only if nobody on this node has.

    Args:
        ref: The file, or the part of it that its limit names.
        encoder: Whose tokenizer.
        cache: Folder of Arrow files.

    Raises:
        DataError: the file is wrong.
    """
    name = ["pieces", str(FORMAT), ref.key, ref.layout, encoder.fingerprint]

    def make() -> pa.Table:
        from trainables.encoders.pretrained import load_tokenizer

        counted = count_pieces(read_unchanged(ref), load_tokenizer(encoder))
        return pa.table({"piece": counted.pieces, "count": counted.counts})

    table = cached(cache, "\x1f".join(name), make)
    return PieceCounts(table["piece"].to_numpy(), table["count"].to_numpy())


def count_pieces(
    found: Sequence[Sentence] | Sequence[Example],
    tokenizer: Any,  # noqa: ANN401 - transformers ships no types
) -> PieceCounts:
    """Count the pieces of sentences, each word tokenised alone, or of texts, each as it is."""
    special = vocabulary(tokenizer)
    unknown = special.unknown if special.unknown >= 0 else special.pad
    often = Counter(_units(found, special.lead))
    total: Counter[int] = Counter()
    units = list(often)
    for low in range(0, len(units), CHUNK):
        chunk = units[low : low + CHUNK]
        for unit, ids in zip(
            chunk, tokenizer(chunk, add_special_tokens=False)["input_ids"], strict=True
        ):
            for piece in ids or [unknown]:
                total[piece] += often[unit]
    pieces = np.array(sorted(total), dtype=np.int64)
    return PieceCounts(pieces, np.array([total[piece] for piece in pieces.tolist()], np.int64))


def _units(found: Sequence[Sentence] | Sequence[Example], lead: str) -> Iterator[str]:
    """What is tokenised in one go: words, or texts."""
    for item in found:
        if isinstance(item, Example):
            yield from filter(None, (item.text, item.pair))
        else:
            for word in item.words:
                yield lead + word
