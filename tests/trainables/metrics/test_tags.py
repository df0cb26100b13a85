"""F1 over tags: by hand, and XTREME's by a second writing of what seqeval 0.0.12 does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.data.conllu import UPOS_TAGS
from trainables.metrics.accuracy import count_right
from trainables.metrics.tags import compare_chunks, count_tags

TAGS = (*sorted(UPOS_TAGS - {"_"}), "_")


def codes(text):
    return np.array([TAGS.index(tag) for tag in text.split()], np.int64)


def chunks(gold, predicted):
    """XTREME counts of one sentence each, sentences parted by bars."""
    where = np.cumsum([0, *(len(sentence.split()) for sentence in gold.split("|"))])
    flat = (codes(side.replace("|", " ")) for side in (gold, predicted))
    return compare_chunks(*flat, where, TAGS)


@pytest.mark.parametrize(
    ("gold", "predicted", "right", "n_predicted", "n_gold"),
    [
        ("NOUN NOUN VERB", "NOUN NOUN VERB", 2, 2, 2),
        # Half a run is no run: accuracy 2/3, F1 1/2.
        ("NOUN NOUN VERB", "NOUN VERB VERB", 0, 2, 2),
        ("NOUN NOUN VERB", "NOUN ADJ VERB", 1, 3, 2),
        # Whole tags are kept: from seqeval 1.0 on this swap scores 1.
        ("CCONJ NOUN SCONJ", "SCONJ NOUN CCONJ", 1, 3, 3),
        ("CCONJ", "SCONJ", 0, 1, 1),
        # S looks like a chunk of one word: two SYM are two chunks, two NUM one.
        ("SYM SYM", "SYM NUM", 1, 2, 2),
        ("NUM NUM", "SYM NUM", 0, 2, 1),
        ("SCONJ SCONJ", "SCONJ SCONJ", 2, 2, 2),
        # I of INTJ is a prefix, but as every type differs nothing goes on from it.
        ("INTJ INTJ NOUN", "INTJ NOUN NOUN", 0, 2, 2),
        # Runs stop with their sentence.
        ("NOUN | NOUN", "NOUN | NOUN", 2, 2, 2),
        # A word without annotation is a chunk that no prediction equals.
        ("_ NOUN", "NOUN NOUN", 0, 1, 2),
    ],
)
def test_chunks_worked_by_hand(gold, predicted, right, n_predicted, n_gold):
    """Runs of equal tags are chunks, whole tags their types."""
    counts = chunks(gold, predicted)
    assert (counts.n_right, counts.n_predicted, counts.n_gold) == (right, n_predicted, n_gold)


def old_seqeval(sentences):
    """Chunks by the rules of seqeval 0.0.12, word after word, with an O after each sentence."""
    found, before, begun = set(), "O", 0
    for at, tag in enumerate([tag for tags in sentences for tag in (*tags, "O")]):
        kind = {"O": "O"}.get(tag, tag)
        changed = before != kind
        ends = before[0] == "S" or (before[0] == "I" and tag[0] in "BSO")
        ends |= before != "O" and changed
        starts = tag[0] == "S" or (before[0] in "SO" and tag[0] == "I")
        starts |= tag != "O" and changed
        if ends:
            found.add((begun, at, before))
        if starts:
            begun = at
        before = kind
    return found


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=8),
        min_size=1,
        max_size=4,
    )
)
def test_chunks_agree_with_the_old_rules(sentences):
    """Counts equal those of a walk over the words by seqeval's own conditions."""
    gold, predicted = ([[pair[i] for pair in words] for words in sentences] for i in (0, 1))
    ours = chunks(*(" | ".join(" ".join(tags) for tags in side) for side in (gold, predicted)))
    there, found = old_seqeval(gold), old_seqeval(predicted)
    assert (ours.n_right, ours.n_predicted, ours.n_gold) == (
        len(there & found),
        len(found),
        len(there),
    )


def test_macro_and_micro_by_hand():
    """Macro F1 counts tags alike, those only predicted too; micro F1 counts words alike."""
    #  NOUN: 1 right of 1 predicted and 2 there: 2/3; VERB: 1 of 2 and 1: 2/3; ADJ: 0 of 1 and 1: 0
    #  ADV: 0 of 1 predicted and 1 there, PROPN 0 of 1 and 0
    gold = codes("NOUN NOUN VERB ADJ ADV")
    predicted = codes("NOUN VERB VERB ADV PROPN")
    counts = count_tags(gold, predicted, len(TAGS))
    assert counts.macro == pytest.approx((2 / 3 + 2 / 3 + 0 + 0 + 0) / 5)
    assert counts.micro == 2 / 5


def test_words_without_tag_are_predicted_but_not_there():
    """An untagged word is a false positive of what was predicted, and no tag of its own."""
    gold = np.array([0, -1, 1])
    counts = count_tags(gold, np.array([0, 0, 1]), 3)
    assert counts.macro == pytest.approx((2 / 3 + 1) / 2)
    assert counts.micro == 4 / 5
    assert count_right(gold, np.array([0, 0, 1])).value == 2 / 3


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_micro_is_accuracy_where_every_word_is_tagged(pairs):
    """To the bit, so that nobody takes the two for two findings."""
    gold, predicted = np.array(pairs).T
    counts = count_tags(gold, predicted, 5)
    assert counts.micro == count_right(gold, predicted).value
    once, again = count_tags(gold[:1], predicted[:1], 5), count_tags(gold[1:], predicted[1:], 5)
    assert (once + again).micro == counts.micro
    assert (once + again).macro == counts.macro
