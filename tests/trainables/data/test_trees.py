import numpy as np
import pytest

from trainables.data.conllu import read_conllu
from trainables.data.sentence import DataError, Sentence
from trainables.data.subwords import as_corpus, build
from trainables.data.trees import check_corpus, check_sentences
from trainables.encoders.pretrained import load_tokenizer

GOOD = ((2, 0, 2), (0,), (2, 3, 0, 3))


@pytest.fixture(scope="module")
def tokenizer(encoder):
    return load_tokenizer(encoder)


def sentences(*trees, deprels=True):
    """One sentence a tree; the line of a sentence is ten times its number."""
    return tuple(
        Sentence(
            sent_id=f"s{number}",
            text="",
            words=("cat",) * len(heads or (0, 0)),
            upos=("NOUN",) * len(heads or (0, 0)),
            heads=heads,
            deprels=("dep",) * len(heads) if deprels else (),
            line=10 * number,
        )
        for number, heads in enumerate(trees, start=1)
    )


def faults(found, tokenizer):
    """What the two checks say, once as sentences and once as arrays."""
    corpus = as_corpus(build(found, tokenizer), "key", "here.conllu")
    for check in (lambda: check_sentences(found, "here.conllu"), lambda: check_corpus(corpus)):
        try:
            check()
        except DataError as error:
            yield str(error)
        else:
            yield ""


@pytest.mark.parametrize(
    ("trees", "fault"),
    [
        (GOOD, ""),
        (((0, 0, 2), (0, 0)), ""),
        ((*GOOD, (2, 1, 0), (1,)), "here.conllu:40: words 1 -> 2 -> 1 form a cycle."),
        ((*GOOD, (1, 0)), "here.conllu:40: words 1 -> 1 form a cycle."),
        (((0, 3, 4, 5, 3),), "here.conllu:10: words 3 -> 4 -> 5 -> 3 form a cycle."),
        ((*GOOD, (), (2, 1)), "here.conllu:40: a sentence of 2 words without heads."),
        (((),), "here.conllu:10: a sentence of 2 words without heads."),
    ],
    ids=["trees", "several roots", "cycle", "own head", "long cycle", "some none", "all none"],
)
def test_what_is_no_tree_is_refused_with_file_and_line(trees, fault, tokenizer):
    """Sentences and arrays are judged alike: cycles and missing heads are refused."""
    said = list(faults(sentences(*trees), tokenizer))
    assert [text[: len(fault)] for text in said] == [fault, fault]
    assert bool(fault) == bool(said[0])
    assert said[0] == said[1]


def test_words_stay_aligned_with_heads_if_a_sentence_has_none(tokenizer):
    """A sentence without tree is -1 in every word, and shifts no other sentence's heads."""
    corpus = as_corpus(build(sentences((0, 1), (), (2, 0)), tokenizer), "key", "here")
    assert corpus.heads.tolist() == [0, 1, -1, -1, 2, 0]
    assert corpus.deprels == ("dep", "dep", "_", "_", "dep", "dep")


def test_heads_alone_are_a_tree(tokenizer):
    """A file in which no word has a relation is a file of trees nevertheless."""
    corpus = as_corpus(build(sentences(*GOOD, deprels=False), tokenizer), "key", "here")
    check_corpus(corpus)
    assert corpus.deprels == ()


@pytest.mark.data
@pytest.mark.slow
def test_all_real_treebanks_are_judged_alike(shared, tokenizer):
    """Every file of the shared folder: sentences and arrays give the same answer."""
    for file in sorted(shared.glob("data/ud*/**/*-test.conllu")):
        found = read_conllu(str(file), 300)
        said = list(faults(found, tokenizer))
        assert said[0].replace("here.conllu", "") == said[1].replace("here.conllu", ""), file
        assert np.unique([len(text) > 0 for text in said]).size == 1
