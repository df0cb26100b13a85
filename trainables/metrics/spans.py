"""Labelled spans of words: BIO tags -> spans -> counts that add up; the ratio comes last.

Two readings of a tag sequence, which differ in what an I-X means that goes on from nothing:

- *lenient*, that of conlleval (Tjong Kim Sang and Buchholz, 2000) and of seqeval by default: it
  opens a span. All papers here report this one.
- *strict*, that of IOB2: it belongs to no span. Equals seqeval's `mode="strict", scheme=IOB2`.

Either way B-X always opens a span, and a span ends where its sentence does, where the kind changes
or before O. So strict spans are the lenient ones that begin with a B. Gold tags are read by the
same rule as predicted ones, hence a broken gold span counts in lenient scores only.

Every word of the file takes part, whatever the windows it was read in, so there is nothing that a
`legacy` denominator (D-11) could leave out: tagging drops no word.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

Reading = Literal["lenient", "strict"]

OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """Spans found, out of those there are; a span is right if both ends and its kind are.

    Attributes:
        n_right: Predicted spans that are gold spans, too.
        n_predicted: Predicted spans.
        n_gold: Gold spans.
    """

    n_right: int
    n_predicted: int
    n_gold: int

    def __add__(self, other: "SpanCounts") -> "SpanCounts":
        return SpanCounts(
            self.n_right + other.n_right,
            self.n_predicted + other.n_predicted,
            self.n_gold + other.n_gold,
        )

    @property
    def precision(self) -> float:
        """Right ones among the predicted; 0 where nothing was predicted, as in conlleval."""
        return self.n_right / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """Right ones among the gold; 0 where there are none."""
        return self.n_right / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, micro-averaged over kinds; 0 without any span."""
        both = self.n_predicted + self.n_gold
        return 2 * self.n_right / both if both else 0.0


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans that do not overlap, in the order of the file.

    Attributes:
        start: First word of each.
        end: One past its last word.
        kind: What it is, as an index.
    """

    start: Int[np.ndarray, " n"]
    end: Int[np.ndarray, " n"]
    kind: Int[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.start)


def kinds_of(tags: Iterable[str]) -> tuple[str, ...]:
    """The kinds of span that tags name, sorted: `PER` of `B-PER`; what follows the first dash."""
    return tuple(sorted({tag[2:] for tag in tags if tag != OUTSIDE}))


def tag_codes(tags: Sequence[str], kinds: Sequence[str]) -> Int[np.ndarray, " w"]:
    """BIO tags as numbers: 0 is O, 2k + 1 begins a span of kind k, 2k + 2 is inside one."""
    codes = {OUTSIDE: 0}
    for index, kind in enumerate(kinds):
        codes[f"B-{kind}"], codes[f"I-{kind}"] = 2 * index + 1, 2 * index + 2
    return np.fromiter((codes[tag] for tag in tags), np.int64, len(tags))


def find_spans(
    codes: Int[np.ndarray, " w"], sentence_start: Int[np.ndarray, " S+1"], reading: Reading
) -> Spans:
    """Read spans off the tags of a whole file.

    Args:
        codes: As `tag_codes` gives them, sentence after sentence.
        sentence_start: First word of each sentence, and the number of words.
        reading: What an I-X that goes on from nothing means.
    """
    is_inside, kind = codes > 0, (codes - 1) // 2
    is_begin = codes % 2 == 1
    is_first = np.zeros(len(codes) + 1, bool)
    is_first[sentence_start] = True
    goes_on = is_inside[1:] & is_inside[:-1] & (kind[1:] == kind[:-1]) & ~is_begin[1:]
    opens = is_inside.copy()
    opens[1:] &= ~goes_on | is_first[1:-1]
    # A span stops before the next one, before O, and with its sentence.
    stops = is_first[1:].copy()
    stops[:-1] |= opens[1:] | ~is_inside[1:]
    start = np.flatnonzero(opens)
    end = np.flatnonzero(is_inside & stops) + 1
    kept = is_begin[start] if reading == "strict" else slice(None)
    return Spans(start[kept], end[kept], kind[start][kept])


def compare_spans(gold: Spans, predicted: Spans) -> SpanCounts:
    """Count the predicted spans that agree with a gold one in both ends and kind."""
    return SpanCounts(len(agreeing(gold, predicted)), len(predicted), len(gold))


def agreeing(gold: Spans, predicted: Spans) -> Int[np.ndarray, " n"]:
    """First words of the spans that both have, with the same end and kind."""
    starts, ours, theirs = np.intersect1d(
        gold.start, predicted.start, assume_unique=True, return_indices=True
    )
    right = (gold.end[ours] == predicted.end[theirs]) & (gold.kind[ours] == predicted.kind[theirs])
    found: Int[np.ndarray, " n"] = starts[right]
    return found
