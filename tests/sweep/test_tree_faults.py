from sweep.annotation import annotation
from trainables.data.sentence import Sentence
from trainables.spec import DataRef

REF = DataRef(code="aa_x", language="aa", split="test", location="x.conllu", fingerprint="sha256:0")


def trees(*all_heads):
    """One sentence of nouns a tree, ten lines each."""
    return [
        Sentence(
            sent_id="",
            text="",
            words=("a",) * 3,
            upos=("NOUN",) * 3,
            heads=heads,
            deprels=("dep",) * len(heads),
            line=10 * number,
        )
        for number, heads in enumerate(all_heads, start=1)
    ]


def test_what_a_parser_cannot_use_is_a_fault_of_the_file():
    """Cycles and sentences without heads are found, with their line, before anything is spent."""
    cyclic = annotation("parsing", REF, trees((0, 1, 2), (2, 1, 0)))
    assert cyclic.fault.startswith("x.conllu:20: words 1 -> 2 -> 1 form a cycle.")
    bare = annotation("parsing", REF, trees((0, 1, 2), (), (0, 1, 1)))
    assert bare.fault.startswith("x.conllu:20: a sentence of 3 words without heads.")


def test_a_tagger_reads_what_a_parser_cannot():
    """The same cycle is no fault for UPOS."""
    assert annotation("upos", REF, trees((2, 1, 0))).fault == ""


def test_several_roots_are_noted():
    """A forest may be used; the check says what becomes of it."""
    found = annotation("parsing", REF, trees((0, 0, 2), (0, 1, 1)))
    assert found.fault == ""
    assert found.notes == ("1 of 2 sentences have several roots; predicted trees have one",)
