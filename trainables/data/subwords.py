"""Sentences -> subwords: flat arrays in an Arrow file, built once and memory-mapped after.

Every word is tokenised alone and owns at least one piece, so nothing is ever dropped: a word
without pieces (zero-width characters, say) becomes the unknown piece, a word of more pieces than
`WORD_LIMIT` is cut to it (D-11, traps 4 and 6 of the protocols).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from trainables.data.cache import cached
from trainables.data.reading import read_unchanged
from trainables.data.sentence import Sentence
from trainables.spec import DataRef, EncoderRef

FORMAT = 2
"""Version of the file; part of its name."""

WORD_LIMIT = 126
"""Pieces kept of one word: it fits into every window of 128 with its special pieces."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Special pieces around a window and the two ids every batch needs."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    pad: int
    unknown: int
    lead: str

    @property
    def n_special(self) -> int:
        """Pieces of a window that belong to no word."""
        return len(self.prefix) + len(self.suffix)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The sentences of one file as flat arrays; S sentences, W words, P pieces.

    Of the shapes below, W1 is W + 1, S1 is S + 1, and H is W or 0.

    Attributes:
        key: `DataRef.key` of what was read.
        location: Its file, for messages.
        pieces: Piece ids without special pieces.
        word_start: First piece of each word; `word_start[W] == P`.
        label_piece: The piece that carries the word's label: its first piece with a character.
            Vocabularies of the XLM-R kind put a bare `▁` before most Japanese and Chinese words,
            and labelling that one ruins transfer.
        sentence_start: First word of each sentence; `sentence_start[S] == W`.
        sent_ids: `# sent_id` of each sentence.
        orig_ids: `# orig_file_sentence` of each sentence.
        texts: `# text` of each sentence.
        lines: Line of each sentence in its file.
        upos: UPOS of each word; empty when the layout has none.
        heads: Head of each word within its sentence, 0 for the root, -1 in a sentence without
            heads; empty when no sentence has any.
        deprels: Relation of each word to its head, subtype included, `_` in a sentence without
            relations; empty when no sentence has any.
        tags: BIO tag of each word; empty when the layout has none.
        n_unknown: Words that hold an unknown piece.
        whole: The corpus that this one was cut from (`trainables.data.truncation`), else None.
    """

    key: str
    location: str
    pieces: Int[np.ndarray, " P"]
    word_start: Int[np.ndarray, " W1"]
    label_piece: Int[np.ndarray, " W"]
    sentence_start: Int[np.ndarray, " S1"]
    sent_ids: tuple[str, ...]
    orig_ids: tuple[str, ...]
    texts: tuple[str, ...]
    lines: tuple[int, ...]
    upos: tuple[str, ...]
    heads: Int[np.ndarray, " H"]
    deprels: tuple[str, ...]
    tags: tuple[str, ...]
    n_unknown: int
    whole: "Corpus | None" = None

    @property
    def n_sentences(self) -> int:
        """Sentences in the file (or up to its limit)."""
        return len(self.sent_ids)

    @property
    def n_words(self) -> int:
        """Syntactic words; the denominator of every tagging metric."""
        return len(self.label_piece)


def vocabulary(tokenizer: Any) -> Vocabulary:  # noqa: ANN401 - transformers ships no types
    """Read off a tokenizer what it puts around a sentence and before a word.

    Byte-level tokenizers mark a word's start by the space before it, so a word that is tokenised
    alone is given one (`lead`); others mark it themselves.
    """
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    at = next(i for i in range(len(whole)) if whole[i : i + len(plain)] == plain)
    spaced = tokenizer.convert_ids_to_tokens(tokenizer(" a", add_special_tokens=False)["input_ids"])
    alone = tokenizer.convert_ids_to_tokens(plain)
    is_byte_level = spaced[0].startswith("Ġ") and not alone[0].startswith("Ġ")
    return Vocabulary(
        prefix=tuple(whole[:at]),
        suffix=tuple(whole[at + len(plain) :]),
        pad=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0,
        unknown=tokenizer.unk_token_id if tokenizer.unk_token_id is not None else -1,
        lead=" " if is_byte_level else "",
    )


def split_words(words: Sequence[str], tokenizer: Any) -> list[tuple[list[int], int]]:  # noqa: ANN401 - as above
    """Tokenise words one by one.

    Returns:
        For each word its pieces (at least one, at most `WORD_LIMIT`) and the index of the piece
        that carries its label: the first one with a character.
    """
    special = vocabulary(tokenizer)
    texts = [special.lead + word for word in words]
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    bare = _bare_pieces(tokenizer)
    fallback = special.unknown if special.unknown >= 0 else special.pad
    out = []
    for ids in encoded:
        kept = ids[:WORD_LIMIT] or [fallback]
        label = next((i for i, piece in enumerate(kept) if piece not in bare), 0)
        out.append((kept, label))
    return out


def _bare_pieces(tokenizer: Any) -> frozenset[int]:  # noqa: ANN401 - as above
    """Pieces that are nothing but a mark of a word's start."""
    found = (tokenizer.convert_tokens_to_ids(mark) for mark in ("▁", "Ġ", "▁▁"))
    return frozenset(i for i in found if i is not None and i != tokenizer.unk_token_id)


def build(sentences: Sequence[Sentence], tokenizer: Any) -> pa.Table:  # noqa: ANN401 - as above
    """Tokenise sentences into a table with one row a sentence (distinct words only once)."""
    distinct = list(dict.fromkeys(word for s in sentences for word in s.words))
    split = dict(zip(distinct, split_words(distinct, tokenizer), strict=True))
    unknown = vocabulary(tokenizer).unknown
    rows: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    for s in sentences:
        parts = [split[word] for word in s.words]
        rows["sent_id"].append(s.sent_id)
        rows["orig_id"].append(s.orig_id)
        rows["text"].append(s.text)
        rows["line"].append(s.line)
        rows["pieces"].append([piece for ids, _ in parts for piece in ids])
        rows["n_pieces"].append([len(ids) for ids, _ in parts])
        rows["label"].append([label for _, label in parts])
        rows["upos"].append(list(s.upos))
        rows["heads"].append(list(s.heads))
        rows["deprels"].append(list(s.deprels))
        rows["tags"].append(list(s.tags))
        rows["n_unknown"].append(sum(unknown in ids for ids, _ in parts))
    return pa.table(rows, schema=_SCHEMA)


_SCHEMA = pa.schema(
    [
        ("sent_id", pa.string()),
        ("orig_id", pa.string()),
        ("text", pa.string()),
        ("line", pa.int64()),
        ("pieces", pa.list_(pa.int32())),
        ("n_pieces", pa.list_(pa.int32())),
        ("label", pa.list_(pa.int32())),
        ("upos", pa.list_(pa.string())),
        ("heads", pa.list_(pa.int32())),
        ("deprels", pa.list_(pa.string())),
        ("tags", pa.list_(pa.string())),
        ("n_unknown", pa.int32()),
    ]
)


def as_corpus(table: pa.Table, key: str, location: str) -> Corpus:
    """View a table of `build` as flat arrays."""
    table = table.combine_chunks()

    def flat(name: str) -> np.ndarray:
        chunk = table.column(name).combine_chunks()
        return np.asarray(chunk.flatten().to_numpy(zero_copy_only=False))

    word_lengths = flat("n_pieces").astype(np.int64)
    word_start = np.concatenate([[0], np.cumsum(word_lengths)]).astype(np.int64)
    per_sentence = table.column("n_pieces").combine_chunks().value_lengths().to_numpy()
    return Corpus(
        key=key,
        location=location,
        pieces=flat("pieces").astype(np.int64),
        word_start=word_start,
        label_piece=word_start[:-1] + flat("label").astype(np.int64),
        sentence_start=np.concatenate([[0], np.cumsum(per_sentence)]).astype(np.int64),
        sent_ids=tuple(table.column("sent_id").to_pylist()),
        orig_ids=tuple(table.column("orig_id").to_pylist()),
        texts=tuple(table.column("text").to_pylist()),
        lines=tuple(table.column("line").to_pylist()),
        upos=_strings(table, "upos"),
        heads=_heads(table),
        deprels=_strings(_filled(table, "deprels", "_"), "deprels"),
        tags=_strings(table, "tags"),
        n_unknown=int(table.column("n_unknown").to_numpy().sum()),
    )


def _heads(table: pa.Table) -> Int[np.ndarray, " W"]:
    column = _filled(table, "heads", -1).column("heads").combine_chunks()
    found: Int[np.ndarray, " W"] = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _filled(table: pa.Table, name: str, missing: object) -> pa.Table:
    """A column with a value for each word, if any sentence of the file has values."""
    lengths = [table.column(of).combine_chunks().value_lengths() for of in (name, "n_pieces")]
    if lengths[0] == lengths[1] or not pa.compute.sum(lengths[0]).as_py():
        return table
    whole = [
        values or [missing] * n
        for values, n in zip(table.column(name).to_pylist(), lengths[1].to_pylist(), strict=True)
    ]
    at = table.schema.get_field_index(name)
    return table.set_column(at, name, pa.array(whole, table.schema.field(name).type))


def _strings(table: pa.Table, name: str) -> tuple[str, ...]:
    """One string a word; equal ones share their memory."""
    column = table.column(name).combine_chunks().flatten().dictionary_encode()
    names = column.dictionary.to_pylist()
    return tuple(names[i] for i in column.indices.to_pylist())


@lru_cache(maxsize=64)
def load_corpus(ref: DataRef, encoder: EncoderRef, cache: str) -> Corpus:
    """Read one file through one tokenizer; tokenise only if nobody on this node has.

    Args:
        ref: What to read.
        encoder: Whose tokenizer; its fingerprint covers the tokenizer's files.
        cache: Folder of Arrow files, shared by all workers of a node.

    Raises:
        DataError: the file is wrong.
    """
    name = f"{FORMAT}\x1f{ref.key}\x1f{ref.layout}\x1f{encoder.fingerprint}"
    table = cached(cache, name, lambda: _tokenise(ref, encoder))
    return as_corpus(table, ref.key, ref.location)


def _tokenise(ref: DataRef, encoder: EncoderRef) -> pa.Table:
    from trainables.encoders.pretrained import load_tokenizer

    return build(read_unchanged(ref), load_tokenizer(encoder))
