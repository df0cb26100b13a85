"""Which annotations are trees: checks of sentences and of whole corpora, with file and line.

A reader of tags takes any heads; a parser needs that every word can be reached from the root.
Several roots are legal to read and to learn from (treebanks before UD 2 have them).
"""

from collections.abc import Sequence

import numpy as np

from trainables.data.conllu import find_cycle
from trainables.data.sentence import DataError, Sentence
from trainables.data.subwords import Corpus

MEND = "Mend it, or leave the sentence out."


def check_sentences(sentences: Sequence[Sentence], path: str) -> None:
    """Refuse a file in which some sentence has no heads, or a cycle.

    Raises:
        DataError: names the first such sentence.
    """
    for sentence in sentences:
        fault = _fault(len(sentence.words), sentence.heads)
        if fault:
            raise DataError(path, sentence.line, fault, MEND)


def check_corpus(corpus: Corpus) -> None:
    """As `check_sentences`, for a corpus that was cut into pieces.

    Raises:
        DataError: names the first such sentence.
    """
    corpus = corpus.whole or corpus
    if _is_sound(corpus):
        return
    for sentence, line in enumerate(corpus.lines):
        words = slice(*corpus.sentence_start[sentence : sentence + 2].tolist())
        heads = corpus.heads[words].tolist()
        fault = _fault(words.stop - words.start, heads if -1 not in heads else [])
        if fault:
            raise DataError(corpus.location, line, fault, MEND)


def _is_sound(corpus: Corpus) -> bool:
    """Whether the root is reached from every word, for all words of a corpus at once."""
    n_words = np.diff(corpus.sentence_start)
    if len(corpus.heads) != corpus.n_words or (corpus.heads < 0).any():
        return False
    root = corpus.n_words
    first = np.repeat(corpus.sentence_start[:-1], n_words)
    above = np.append(np.where(corpus.heads == 0, root, first + corpus.heads - 1), root)
    for _ in range(int(n_words.max(initial=0)).bit_length()):
        above = above[above]  # twice as far up
    return bool((above == root).all())


def _fault(n_words: int, heads: Sequence[int]) -> str:
    if len(heads) != n_words:
        return f"a sentence of {n_words} words without heads"
    cycle = find_cycle(heads)
    return f"words {' -> '.join(map(str, [*cycle, cycle[0]]))} form a cycle" if cycle else ""
