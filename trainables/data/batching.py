"""Pieces -> windows -> batches; a long sentence gets overlapping windows, nothing is dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from trainables.data.subwords import Corpus, Vocabulary
from trainables.seeding import stream

MEGA_BATCH = 50
"""Batches sorted by length together: enough for 1.06x padding, few enough to stay random."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Stretches of words that go through the encoder together; N windows.

    Every word is owned by exactly one window. A window after the first of its sentence begins with
    context: words that an earlier window owns, seen but neither labelled nor scored.

    Attributes:
        sentence: Sentence of each window.
        start: First word, context included.
        own: First owned word.
        end: One past the last word.
        n_pieces: Pieces, context included, special pieces not.
    """

    sentence: Int[np.ndarray, " N"]
    start: Int[np.ndarray, " N"]
    own: Int[np.ndarray, " N"]
    end: Int[np.ndarray, " N"]
    n_pieces: Int[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.sentence)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some sentences, padded; b windows, t positions, s sentences, w words.

    Attributes:
        input_ids: Piece ids with special pieces.
        attention_mask: 1 where there is a piece.
        owned: Pieces of owned words: what pooling averages.
        sentence: Sentence of each window.
        chosen: The sentences, in the order of the batch.
        first: First window of each chosen sentence; its position 0 stands for the sentence.
        n_words: Words of each chosen sentence.
        row: Window of each word; words in the order of the sentences.
        column: Position of each word's label piece.
        word: Index of each word in the corpus.
        token_types: Which text of a pair each piece belongs to; None where there are no pairs.
        tags: Number of each word's gold tag, for a head that is told; None for others.
    """

    input_ids: Int[np.ndarray, "b t"]
    attention_mask: Int[np.ndarray, "b t"]
    owned: Bool[np.ndarray, "b t"]
    sentence: Int[np.ndarray, " b"]
    chosen: Int[np.ndarray, " s"]
    first: Int[np.ndarray, " s"]
    n_words: Int[np.ndarray, " s"]
    row: Int[np.ndarray, " w"]
    column: Int[np.ndarray, " w"]
    word: Int[np.ndarray, " w"]
    token_types: Int[np.ndarray, "b t"] | None = None
    tags: Int[np.ndarray, " w"] | None = None


@runtime_checkable  # so that shapes and types can be checked in tests
class Units(Protocol):
    """What the loop draws: the sentences of a file, whatever they are made of."""

    @property
    def lengths(self) -> Int[np.ndarray, " S"]:
        """Pieces of each sentence, special ones included, over all its windows."""
        ...

    def collate(self, chosen: Int[np.ndarray, " s"]) -> Batch:
        """Pad the chosen sentences to the longest window among them."""
        ...


@dataclass(frozen=True, slots=True)
class Words:
    """A corpus of words, cut into windows (a `Units`)."""

    corpus: Corpus
    windows: Windows
    special: Vocabulary
    tags: Int[np.ndarray, " W"] | None = None

    @property
    def lengths(self) -> Int[np.ndarray, " S"]:
        """Pieces of each sentence, special ones included, over all its windows."""
        pieces = self.windows.n_pieces + self.special.n_special
        return np.bincount(
            self.windows.sentence, weights=pieces, minlength=self.corpus.n_sentences
        ).astype(np.int64)

    def collate(self, chosen: Int[np.ndarray, " s"]) -> Batch:
        """Pad the chosen sentences to the longest window among them."""
        starts = np.searchsorted(self.windows.sentence, [chosen, chosen + 1])
        rows = np.concatenate([np.arange(low, high) for low, high in starts.T])
        batch = collate(self.corpus, self.windows, rows, self.special)
        return batch if self.tags is None else replace(batch, tags=self.tags[batch.word])


def make_windows(corpus: Corpus, *, capacity: int, overlap: int) -> Windows:
    """Cut a corpus into windows of whole words (D-11).

    Args:
        corpus: What to cut.
        capacity: Most pieces in a window, special pieces not counted.
        overlap: Most pieces of left context.

    Raises:
        ValueError: a window could not hold a word and its context.
    """
    if capacity < 1 or not 0 <= overlap < capacity:
        raise ValueError(
            f"a window of {capacity} pieces cannot hold {overlap} pieces of context and a word; "
            "raise options.max_length or lower options.overlap"
        )
    rows: list[tuple[int, int, int, int, int]] = []
    start_of, sentence_start = corpus.word_start, corpus.sentence_start
    for sentence in range(corpus.n_sentences):
        own, last = int(sentence_start[sentence]), int(sentence_start[sentence + 1])
        first = own
        while own < last:
            start = own
            while start > first and start_of[own] - start_of[start - 1] <= overlap:
                start -= 1
            # An over-long word gives up its context first; `collate` then cuts it to the window.
            if start_of[own + 1] - start_of[start] > capacity:
                start = own
            end = int(np.searchsorted(start_of, start_of[start] + capacity, side="right")) - 1
            end = min(max(end, own + 1), last)
            n = min(int(start_of[end] - start_of[start]), capacity)
            rows.append((sentence, start, own, end, n))
            own = end
    columns = np.asarray(rows, dtype=np.int64).reshape(-1, 5).T
    return Windows(*columns)


def collate(
    corpus: Corpus, windows: Windows, chosen: Int[np.ndarray, " b"], special: Vocabulary
) -> Batch:
    """Pad the chosen windows (all of some sentences, in order) to their longest."""
    lead, tail = len(special.prefix), len(special.suffix)
    width = int(windows.n_pieces[chosen].max()) + special.n_special
    ids = np.full((len(chosen), width), special.pad, dtype=np.int64)
    mask = np.zeros((len(chosen), width), dtype=np.int64)
    owned = np.zeros((len(chosen), width), dtype=bool)
    rows, columns, words = [], [], []
    for at, window in enumerate(chosen):
        start, own, end = windows.start[window], windows.own[window], windows.end[window]
        n = windows.n_pieces[window]
        first = corpus.word_start[start]
        ids[at, :lead] = special.prefix
        ids[at, lead : lead + n] = corpus.pieces[first : first + n]
        ids[at, lead + n : lead + n + tail] = special.suffix
        mask[at, : lead + n + tail] = 1
        owned[at, lead + corpus.word_start[own] - first : lead + n] = True
        inside = np.minimum(corpus.label_piece[own:end] - first, n - 1)
        rows.append(np.full(end - own, at))
        columns.append(lead + inside)
        words.append(np.arange(own, end))
    sentence = windows.sentence[chosen]
    first = np.flatnonzero(np.diff(sentence, prepend=-1))
    sentences = sentence[first]
    return Batch(
        input_ids=ids,
        attention_mask=mask,
        owned=owned,
        sentence=sentence,
        chosen=sentences,
        first=first,
        n_words=corpus.sentence_start[sentences + 1] - corpus.sentence_start[sentences],
        row=np.concatenate(rows),
        column=np.concatenate(columns),
        word=np.concatenate(words),
    )


def training_batches(
    lengths: Int[np.ndarray, " N"],
    *,
    batch_size: int,
    seed: int,
    epoch: int,
    how: Literal["bucketed", "random"],
) -> list[Int[np.ndarray, " b"]]:
    """Order the sentences of one epoch; depends on (seed, epoch) and the lengths alone.

    `bucketed`: a random order is cut into mega-batches, each sorted by length and cut into batches,
    which are then shuffled. Every sentence is drawn once, and which ones meet in an epoch stays
    random to within a mega-batch.
    """
    rng = np.random.default_rng(stream(seed, "order", epoch))
    order = rng.permutation(len(lengths))
    if how == "random":
        return _cut(order, batch_size)
    batches: list[Int[np.ndarray, " b"]] = []
    for mega in _cut(order, batch_size * MEGA_BATCH):
        batches += _cut(mega[np.argsort(lengths[mega], kind="stable")], batch_size)
    return [batches[i] for i in rng.permutation(len(batches))]


def evaluation_batches(
    lengths: Int[np.ndarray, " N"], *, budget: int, waste: int | None = None
) -> list[Int[np.ndarray, " b"]]:
    """Group sentences by length so that no batch holds more than about `budget` pieces.

    Args:
        lengths: Pieces of each sentence.
        budget: Most pieces of a batch, padding counted; a single longer sentence is a batch.
        waste: Most padding of a batch; None for any.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, at = [], 0
    while at < len(order):
        longest = max(1, int(lengths[order[at]]))
        n = max(1, budget // longest)
        if waste is not None:
            padding = np.cumsum(longest - lengths[order[at : at + n]])
            n = max(1, int(np.searchsorted(padding, waste, side="right")))
        batches.append(order[at : at + n])
        at += n
    return batches


def forward_parts(
    lengths: Int[np.ndarray, " s"], *, size: int, budget: float
) -> list[Int[np.ndarray, " k"]]:
    """Cut a batch into parts that go forward together; places in the batch, in its own order.

    One long sentence pads all that go with it, and attention grows with the square of its length:
    16 windows of 500 pieces keep gigabytes of it for the backward pass. So no part holds
    more than `budget` padded pieces (but a single sentence may), nor more than `size` sentences.
    """
    parts: list[list[int]] = []
    longest = 0
    for place, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if parts and len(parts[-1]) < size and (len(parts[-1]) + 1) * longest <= budget:
            parts[-1].append(place)
        else:
            parts.append([place])
            longest = length
    return [np.asarray(part) for part in parts]


def _cut(order: Int[np.ndarray, " N"], size: int) -> list[Int[np.ndarray, " b"]]:
    return [order[i : i + size] for i in range(0, len(order), size)]


def padding_ratio(lengths: Int[np.ndarray, " N"], batches: Sequence[np.ndarray]) -> float:
    """Padded over real pieces; 1 is no padding at all."""
    padded = sum(int(lengths[b].max()) * len(b) for b in batches)
    return padded / int(lengths.sum())
