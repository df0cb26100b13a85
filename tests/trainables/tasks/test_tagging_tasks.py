"""Named entities and UPOS as tasks: inventories, rows without label, scores, and whole trials."""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref
from trainables.spec import HyperParameters, Request, TrialOptions
from trainables.tasks.ner import Ner
from trainables.tasks.upos import Upos
from trainables.trial import run_trial


def corpus(text, field="tags"):
    """Words by their labels, sentences parted by bars; the other columns are not there."""
    sentences = [sentence.split() for sentence in text.split("|")]
    labels = tuple(label for sentence in sentences for label in sentence)
    columns = {"tags": (), "upos": (), field: labels}
    starts = np.cumsum([0, *map(len, sentences)])
    return SimpleNamespace(location="here", n_words=len(labels), sentence_start=starts, **columns)


def scores(task, train, gold, predicted, field):
    """Scores of predictions spelled out in words."""
    labels = task.inventory(corpus(train, field))
    there = corpus(gold, field)
    rows = np.array([labels.index(name) for name in predicted.replace("|", " ").split()])
    return task.score(there, task.gold(there, labels), rows[:, None], labels)


def test_the_inventory_of_entities_is_the_training_files():
    """BIO tags as they stand, sorted, and always O; a file without entities is refused."""
    assert Ner().inventory(corpus("B-PER I-PER | B-LOC")) == ("B-LOC", "B-PER", "I-PER", "O")
    with pytest.raises(DataError, match="here: no word has an entity tag"):
        Ner().inventory(corpus("O O"))
    with pytest.raises(DataError, match="no word has an entity tag"):
        Ner().inventory(corpus("NOUN", "upos"))


def test_a_tag_that_training_never_saw_has_no_row_to_learn():
    """MISC of CoNLL-2003 is -1 for a WikiANN model; a file without tags is refused."""
    gold = Ner().gold(corpus("B-MISC O B-PER"), ("B-PER", "O"))
    assert gold.tolist() == [[-1], [1], [0]]
    with pytest.raises(DataError, match="here: 0 of 1 words have an entity tag"):
        Ner().gold(corpus("NOUN", "upos"), ("B-PER", "O"))


def test_entities_of_a_kind_never_learnt_stay_misses():
    """Domain analysis, Table 2: MISC spans stay in the denominator and cannot be found."""
    found = scores(Ner(), "B-PER I-PER O", "B-MISC O B-PER I-PER", "B-PER O B-PER I-PER", "tags")
    assert found == {"f1_lenient": (0.5, 2), "f1_strict": (0.5, 2)}


def test_lenient_and_strict_part_at_a_broken_prediction():
    """I-PER from nothing is a span for conlleval and none for IOB2."""
    found = scores(Ner(), "B-PER I-PER O", "B-PER O | B-PER", "I-PER O | B-PER", "tags")
    assert found["f1_lenient"] == (1.0, 2)
    assert found["f1_strict"] == (pytest.approx(2 / 3), 2)


def test_upos_scores_by_hand():
    """Accuracy counts every word; the F1s treat words without tag and unknown tags as they say."""
    # Never seen: INTJ. Untagged: one word.
    found = scores(
        Upos(), "NOUN VERB", "NOUN NOUN VERB _ | INTJ", "NOUN NOUN NOUN VERB | VERB", "upos"
    )
    assert found["accuracy"] == (2 / 5, 5)
    # NOUN 2 of 3 predicted and 2 there: 4/5; VERB 0 of 2 and 1; INTJ 0 of 0 and 1.
    assert found["f1_macro"] == (pytest.approx((4 / 5) / 3), 5)
    assert found["f1_micro"] == (4 / 9, 5)
    # Gold chunks: NOUN NOUN, VERB, _, INTJ; predicted: NOUN x 3, VERB, VERB. None agrees.
    assert found["pos_f1_xtreme"] == (0.0, 4)


def entities(rng, n, prefix=""):
    """Sentences in which `tree` is a place, `sun bird` a person and `old dog` something else."""
    kinds = {"tree": ["tree B-LOC"], "sun": ["sun B-PER", "bird I-PER"]}
    if prefix == "":
        kinds["old"] = ["old B-MISC", "dog I-MISC"]
    blocks = []
    for _ in range(n):
        words = [rng.choice(["tree", "sun", "old", "eat", "now"]) for _ in range(5)]
        rows = [row for word in words for row in kinds.get(word, [f"{word} O"])]
        blocks.append("".join(f"{prefix}{row.replace(' ', chr(9))}\n" for row in rows))
    return "\n".join(blocks)


@pytest.fixture
def ner(spec, tmp_path):
    """A trial trained on made-up WikiANN and tested on it and on CoNLL columns with MISC."""
    files = {
        "xx/train": entities(random.Random(1), 80, "xx:"),
        "xx/dev": entities(random.Random(2), 20, "xx:"),
        "xx/test": entities(random.Random(3), 30, "xx:"),
        "eng.testb": entities(random.Random(4), 30).replace("\t", " NN I-NP "),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    refs = (data_ref(tmp_path, "wikiann-xx", "test"), data_ref(tmp_path, "conll-en", "test"))
    made = replace(
        spec,
        task="ner",
        source="xx",
        train=data_ref(tmp_path, "wikiann-xx", "train"),
        dev=data_ref(tmp_path, "wikiann-xx", "dev"),
        hyper=HyperParameters(learning_rate=5e-3, batch_size=8, epochs=8),
    )
    n_misc = files["eng.testb"].count("B-MISC")
    return made, Request(targets=refs), (files["eng.testb"].count("B-"), n_misc)


def test_a_trial_of_named_entities(ner, workspace):
    """WikiANN is learnt; on CoNLL all MISC spans are missed and still counted."""
    spec, request, (n_spans, n_misc) = ner
    result = run_trial(spec, request, workspace)
    test = {(s.treebank, s.metric): s for s in result.scores if s.split == "test"}
    assert test["wikiann-xx", "f1_lenient"].value > 0.9
    other = test["conll-en", "f1_lenient"]
    assert (other.n, other.language) == (n_spans, "en")
    # At best all others are found, and nothing else: recall 1 - n_misc / n, precision 1.
    recall = 1 - n_misc / n_spans
    assert 0.3 < other.value <= 2 * recall / (1 + recall)
    assert {point.dev_metric for point in result.curve} == {"f1_lenient"}


def test_windows_are_stitched_before_spans_are_read(ner, workspace):
    """Cut into windows of few pieces, a file has the same spans in the denominator (trap 1)."""
    spec, request, (n_spans, _) = ner
    narrow = replace(spec, options=TrialOptions(max_length=10, overlap=3))
    result = run_trial(narrow, request, workspace)
    test = {(s.language, s.metric): s for s in result.scores if s.split == "test"}
    assert {test["en", metric].n for metric in ("f1_lenient", "f1_strict")} == {n_spans}
    # A person cut in two would be two spans, both wrong.
    assert test["xx", "f1_lenient"].value > 0.9
