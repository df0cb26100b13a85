"""Sentences cut where one window ends, for denominators as the published codes have them (D-11).

Only `options.denominator = "legacy"` comes here. What is cut is neither seen, predicted nor
counted, and how much that was is a row of its own; everywhere else long sentences go on in a new
window.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int

from trainables.data.subwords import Corpus


def truncated(corpus: Corpus, capacity: int) -> Corpus:
    """The first words of each sentence: as many whole words as one window holds, at least one.

    Heads that were cut away become -1: such a word can never be attached rightly, and still counts.

    Args:
        corpus: Sentences of any length.
        capacity: Most pieces of a sentence, special pieces not counted.
    """
    kept = _kept(corpus, capacity)
    if kept.all():
        return replace(corpus, whole=corpus)
    n_words = np.add.reduceat(kept, corpus.sentence_start[:-1], dtype=np.int64)
    n_pieces = np.diff(corpus.word_start)
    word_start = np.concatenate([[0], np.cumsum(n_pieces[kept])])
    label = (corpus.label_piece - corpus.word_start[:-1])[kept]
    return replace(
        corpus,
        pieces=corpus.pieces[np.repeat(kept, n_pieces)],
        word_start=word_start,
        label_piece=word_start[:-1] + label,
        sentence_start=np.concatenate([[0], np.cumsum(n_words)]),
        upos=_rest(corpus.upos, kept),
        heads=_heads(corpus, kept, n_words),
        deprels=_rest(corpus.deprels, kept),
        tags=_rest(corpus.tags, kept),
        whole=corpus,
    )


def _kept(corpus: Corpus, capacity: int) -> Bool[np.ndarray, " W"]:
    """Words that end within the first window of their sentence, and every first word."""
    n_words = np.diff(corpus.sentence_start)
    first = np.repeat(corpus.sentence_start[:-1], n_words)
    kept: Bool[np.ndarray, " W"] = corpus.word_start[1:] - corpus.word_start[first] <= capacity
    kept[corpus.sentence_start[:-1]] = True
    return kept


def _rest(values: tuple[str, ...], kept: Bool[np.ndarray, " W"]) -> tuple[str, ...]:
    """One value a kept word; none where the layout has none."""
    return tuple(values[i] for i in np.flatnonzero(kept)) if values else ()


def _heads(
    corpus: Corpus, kept: Bool[np.ndarray, " W"], n_words: Int[np.ndarray, " S"]
) -> Int[np.ndarray, " H"]:
    """Heads of the words that are kept; -1 for those whose head is not."""
    if not len(corpus.heads):
        return corpus.heads
    heads = corpus.heads[kept]
    return np.where(heads <= np.repeat(n_words, n_words), heads, -1)
