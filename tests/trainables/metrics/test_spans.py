"""Spans of BIO tags: by hand where systems disagree, by seqeval where it is right."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2

from trainables.metrics.spans import SpanCounts, compare_spans, find_spans, kinds_of, tag_codes

KINDS = ("LOC", "MISC", "PER")
TAGS = ["O", *(f"{prefix}-{kind}" for kind in ("LOC", "PER") for prefix in "BI")]


def starts(sentences):
    return np.cumsum([0, *map(len, sentences)])


def spans(text, reading):
    """Spans of sentences written like `B-PER I-PER | O`, as (start, end, kind)."""
    sentences = [sentence.split() for sentence in text.split("|")]
    codes = tag_codes([tag for sentence in sentences for tag in sentence], KINDS)
    found = find_spans(codes, starts(sentences), reading)
    columns = (found.start.tolist(), found.end.tolist(), found.kind.tolist())
    return [(start, end, KINDS[kind]) for start, end, kind in zip(*columns, strict=True)]


def counts(gold, predicted, reading):
    """Counts of tags given as lists of sentences."""
    where = starts(gold)
    read = [
        find_spans(tag_codes([tag for tags in side for tag in tags], KINDS), where, reading)
        for side in (gold, predicted)
    ]
    return compare_spans(*read)


@pytest.mark.parametrize(
    ("text", "lenient", "strict"),
    [
        ("O O", [], []),
        ("B-PER I-PER O", [(0, 2, "PER")], [(0, 2, "PER")]),
        ("B-PER B-PER", [(0, 1, "PER"), (1, 2, "PER")], [(0, 1, "PER"), (1, 2, "PER")]),
        ("I-PER I-PER", [(0, 2, "PER")], []),
        ("O I-PER O", [(1, 2, "PER")], []),
        ("B-PER I-LOC", [(0, 1, "PER"), (1, 2, "LOC")], [(0, 1, "PER")]),
        ("B-PER I-LOC I-LOC", [(0, 1, "PER"), (1, 3, "LOC")], [(0, 1, "PER")]),
        ("B-PER I-LOC I-PER", [(0, 1, "PER"), (1, 2, "LOC"), (2, 3, "PER")], [(0, 1, "PER")]),
        ("B-PER O I-PER", [(0, 1, "PER"), (2, 3, "PER")], [(0, 1, "PER")]),
        # No span goes on into the next sentence.
        ("B-PER | I-PER", [(0, 1, "PER"), (1, 2, "PER")], [(0, 1, "PER")]),
        ("O B-LOC | I-LOC I-LOC | O", [(1, 2, "LOC"), (2, 4, "LOC")], [(1, 2, "LOC")]),
        ("B-MISC", [(0, 1, "MISC")], [(0, 1, "MISC")]),
    ],
)
def test_spans_worked_by_hand(text, lenient, strict):
    """Each sequence has the spans that conlleval and IOB2 give it."""
    assert spans(text, "lenient") == lenient
    assert spans(text, "strict") == strict


@pytest.mark.parametrize(
    ("gold", "predicted", "lenient", "strict"),
    [
        # MaChAmp holds these for the same span, as both end with the sentence.
        ("B-PER I-PER", "B-PER O", SpanCounts(0, 1, 1), SpanCounts(0, 1, 1)),
        ("B-PER O", "B-PER I-PER", SpanCounts(0, 1, 1), SpanCounts(0, 1, 1)),
        # seqeval's probe: all right leniently, not strictly.
        ("I-PER I-PER", "B-PER I-PER", SpanCounts(1, 1, 1), SpanCounts(0, 1, 0)),
        ("B-PER I-PER", "I-PER I-PER", SpanCounts(1, 1, 1), SpanCounts(0, 0, 1)),
        (
            "B-PER I-PER O B-LOC",
            "I-PER I-PER O B-LOC",
            SpanCounts(2, 2, 2),
            SpanCounts(1, 1, 2),
        ),
        # Right ends, wrong kind; right kind, wrong ends.
        ("B-PER I-PER", "B-LOC I-LOC", SpanCounts(0, 1, 1), SpanCounts(0, 1, 1)),
        ("B-PER I-PER O", "O B-PER I-PER", SpanCounts(0, 1, 1), SpanCounts(0, 1, 1)),
        # A kind that was never learnt stays a miss.
        ("B-MISC O B-PER", "B-LOC O B-PER", SpanCounts(1, 2, 2), SpanCounts(1, 2, 2)),
        ("O", "O", SpanCounts(0, 0, 0), SpanCounts(0, 0, 0)),
    ],
)
def test_counts_worked_by_hand(gold, predicted, lenient, strict):
    """Each pair has the counts that its definition gives it."""
    assert counts([gold.split()], [predicted.split()], "lenient") == lenient
    assert counts([gold.split()], [predicted.split()], "strict") == strict


def test_ratios():
    """Precision, recall and F1 come from sums; without spans they are 0."""
    total = SpanCounts(1, 2, 3) + SpanCounts(2, 2, 5)
    assert total == SpanCounts(3, 4, 8)
    assert (total.precision, total.recall, total.f1) == (0.75, 0.375, 0.5)
    empty = SpanCounts(0, 0, 0)
    assert (empty.precision, empty.recall, empty.f1) == (0.0, 0.0, 0.0)
    # The two-span probe of the protocols: lenient 1, strict 0.67.
    assert SpanCounts(1, 1, 2).f1 == pytest.approx(2 / 3)


def test_kinds_keep_their_dashes():
    """Only the first dash parts prefix and kind, as in seqeval; empty kinds do not merge."""
    assert kinds_of(["O", "B-PER", "I-PER-x", "B-PER-x"]) == ("PER", "PER-x")


@st.composite
def pairs(draw):
    """Gold and predicted tags of the same sentences, broken ones included."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    tags = st.sampled_from(TAGS)
    return [
        [draw(st.lists(tags, min_size=n, max_size=n)) for n in lengths] for _ in ("gold", "pred")
    ]


@given(pairs())
def test_seqeval_agrees(pair):
    """On any tags, broken ones too, both readings give the F1 of seqeval's two modes."""
    gold, predicted = pair
    with warnings.catch_warnings():  # seqeval warns where there is nothing to find
        warnings.simplefilter("ignore")
        lenient = f1_score(gold, predicted)
        strict = f1_score(gold, predicted, mode="strict", scheme=IOB2)
    assert counts(gold, predicted, "lenient").f1 == pytest.approx(lenient, abs=1e-12)
    assert counts(gold, predicted, "strict").f1 == pytest.approx(strict, abs=1e-12)


@given(pairs())
def test_counts_add_up_over_sentences(pair):
    """A file's counts are the sum of its sentences': no span crosses from one to the next."""
    gold, predicted = pair
    for reading in ("lenient", "strict"):
        total = SpanCounts(0, 0, 0)
        for ours, theirs in zip(gold, predicted, strict=True):
            total += counts([ours], [theirs], reading)
        assert counts(gold, predicted, reading) == total


@given(pairs())
def test_what_agrees_wholly_is_right_wholly(pair):
    """Tags held against themselves have every span right, and strict spans are lenient ones."""
    gold, _ = pair
    lenient, strict = (counts(gold, gold, reading) for reading in ("lenient", "strict"))
    assert lenient.n_right == lenient.n_predicted == lenient.n_gold >= strict.n_gold
