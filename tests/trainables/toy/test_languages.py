"""The invented languages: the same trees, said otherwise, in files for the ordinary readers."""

import hashlib
import json
from collections import Counter, defaultdict

import pytest

from trainables.data.bio import read_uner
from trainables.data.conllu import check_tree, read_conllu
from trainables.data.parallel import align
from trainables.data.treebanks import data_ref
from trainables.toy.corpus import MANIFEST, N_PARALLEL, SIZES, cached_toy, parallel, treebank
from trainables.toy.dice import Dice
from trainables.toy.grammar import Node, sentences
from trainables.toy.languages import LANGUAGES, SOURCE, distance, distances
from trainables.toy.lexicon import CONCEPTS, roots, written
from trainables.toy.rendering import render


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return cached_toy(tmp_path_factory.mktemp("cache"))


def relations(root):
    """Every (relation, concept, concept above) of a tree."""
    found, waiting = Counter(), [(root, "")]
    while waiting:
        node, above = waiting.pop()
        found[node.deprel, node.concept, above] += 1
        waiting += [(child, node.concept) for child in node.below]
    return found


def test_files_are_the_same_bytes_everywhere(folder, tmp_path):
    """Writing again gives the hashes of the manifest, and those are of version 1."""
    about = json.loads((folder / MANIFEST).read_text())
    for name, digest in about["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    again = json.loads((cached_toy(tmp_path) / MANIFEST).read_text())
    assert again == about
    whole = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    assert whole == GOLDEN, "raise VERSION in trainables/toy/languages.py if this was meant"


GOLDEN = "afb654b8ff15c904f38e3c3d3cd75b008f8d6742451e8488496655468872f9de"
"""Of the manifest of version 1."""


def test_readers_find_what_was_said(folder):
    """Treebanks and names of every language come back from their files word by word, as trees."""
    for code in LANGUAGES:
        for split in SIZES:
            ref = data_ref(folder, f"{code}_toy", split)
            said = treebank(code, split)
            found = read_conllu(ref.location)
            assert ref.language == code
            assert [(s.words, s.upos, s.heads, s.deprels, s.text) for s in found] == [
                (s.words, s.upos, s.heads, s.deprels, s.text) for s in said
            ]
            assert [check_tree(s) for s in found] == [None] * SIZES[split]
            names = read_uner(data_ref(folder, f"uner-{code}_toy", split).location)
            assert [(s.words, s.tags) for s in names] == [(s.words, s.tags) for s in said]


def test_parallel_sentences_are_translations(folder):
    """A sentence has the same relations between the same parts of speech in all languages."""
    files = {}
    for code in LANGUAGES:
        path = data_ref(folder, f"{code}_par", "test").location
        files[code] = (path, read_conllu(path))
    order = align(files)
    assert set(map(len, order.values())) == {N_PARALLEL}

    def shape(sentence):
        tags = ("", *sentence.upos)
        rows = zip(sentence.upos, sentence.deprels, sentence.heads, strict=True)
        return Counter((upos, deprel, tags[head]) for upos, deprel, head in rows)

    for k in range(N_PARALLEL):
        shapes = [shape(files[code][1][order[code][k]]) for code in LANGUAGES]
        assert all(found == shapes[0] for found in shapes)


def test_parts_share_no_sentence_but_by_chance():
    """No tree of a language's treebank is drawn for another part or for the parallel sentences."""
    drawn = defaultdict(list)
    for purpose in ("qaa-train", "qaa-dev", "qab-train", "parallel"):
        for tree in sentences(purpose, 60):
            drawn[purpose].append(frozenset(relations(tree).items()))
    long = {purpose: {t for t in trees if len(t) > 8} for purpose, trees in drawn.items()}
    for purpose, trees in long.items():
        for other, others in long.items():
            assert purpose == other or not trees & others


def clause():
    """`the big woman not gives the bread to the town`, more or less."""
    subject = Node("noun-animate-0", "nsubj", below=[Node("adj-animate-0", "amod")])
    place = Node("noun-place-0", "obl", below=[Node("adp-to", "case")])
    thing = Node("noun-thing-0", "obj")
    stop = Node("punct-stop", "punct")
    return Node("verb-act-0", "root", below=[stop, place, thing, subject])


@pytest.mark.parametrize(
    ("code", "order"),
    [
        ("qaa", "ADJ nsubj VERB obj ADP obl"),
        ("qae", "ADJ nsubj obl ADP obj VERB"),
        ("qaf", "VERB nsubj ADJ obj ADP obl"),
        ("qah", "nsubj ADJ VERB obj ADP obl"),
    ],
)
def test_languages_have_the_order_that_they_say(code, order):
    """Verb, adposition and adjective stand where the language's description puts them."""
    said = render(clause(), code, "s")
    names = [
        deprel if deprel in ("nsubj", "obj", "obl") else upos
        for deprel, upos in zip(said.deprels, said.upos, strict=True)
    ]
    assert " ".join(names) == f"{order} PUNCT"


def test_shared_roots_are_the_share_that_is_promised():
    """A language has its share of the source's roots, names apart, and all names."""
    mine = roots(SOURCE)
    for code, language in LANGUAGES.items():
        theirs = roots(code)
        assert len(set(theirs.values())) == len(theirs), "two roots are spelled alike"
        own = [root for root in mine if not root.startswith("name-")]
        share = sum(mine[root] == theirs[root] for root in own) / len(own)
        assert share == pytest.approx(language.shared, abs=0.01)
        assert all(mine[root] == theirs[root] for root in mine if root.startswith("name-"))


def test_scripts_differ_letter_by_letter():
    """A word in another script has as many letters and none of the Latin ones."""
    for script in ("Cyrillic", "Greek", "Georgian"):
        word = written("abdefghijklmnoprstuvz", script)
        assert len(set(word)) == 21
        assert not any("a" <= letter <= "z" for letter in word)


def test_distances_are_those_of_the_descriptions():
    """Kivo: four fifths of the words, object before verb and postpositions, no affixes."""
    kivo = distances()["qak"]
    assert (kivo.order, kivo.lexicon, kivo.script, kivo.affixes) == pytest.approx((0.5, 0.2, 0, 1))
    assert kivo.total == pytest.approx((0.5 + 0.2 + 0 + 1) / 4)
    assert kivo.visible == pytest.approx(0.2)
    assert distances()["qag"].visible == 1, "what is shared cannot be seen in other letters"
    assert distances()[SOURCE].total == 0
    one, other = LANGUAGES["qai"], LANGUAGES["qab"]
    assert distance(one, other) == distance(other, one)


def test_a_form_alone_does_not_tell_the_part_of_speech():
    """Giving each form its most usual tag is wrong for at least a twentieth of the words."""
    for code in ("qaa", "qai"):
        seen = defaultdict(Counter)
        for sentence in treebank(code, "train"):
            for word, upos in zip(sentence.words, sentence.upos, strict=True):
                seen[word][upos] += 1
        right = total = 0
        for sentence in treebank(code, "test"):
            for word, upos in zip(sentence.words, sentence.upos, strict=True):
                total += 1
                right += bool(seen[word]) and seen[word].most_common(1)[0][0] == upos
        assert 0.6 < right / total < 0.95


def test_every_tag_and_relation_occurs():
    """The source's training file has all tags of the grammar, and relations that no other lacks."""
    train = treebank(SOURCE, "train")
    tags = {upos for sentence in train for upos in sentence.upos}
    assert tags == {concept.upos for concept in CONCEPTS.values()}
    learnt = {deprel for sentence in train for deprel in sentence.deprels}
    for code in LANGUAGES:
        assert {deprel for s in parallel(code) for deprel in s.deprels} <= learnt


def test_dice_are_fair_and_named():
    """Equal names roll alike, others do not, and a pick reaches every item about equally often."""
    assert [Dice("a", 1).below(100) for _ in range(3)] == [Dice("a", 1).below(100)] * 3
    assert [Dice("a", 1).below(10**9)] != [Dice("a", 2).below(10**9)]
    dice = Dice("fair")
    counts = Counter(dice.pick("abcd") for _ in range(4000))
    assert all(850 < counts[letter] < 1150 for letter in "abcd")
    zipf = Counter(dice.zipf("abc") for _ in range(6000))
    expected = {"a": 6 / 13, "b": 4 / 13, "c": 3 / 13}  # 1/2, 1/3, 1/4
    assert all(abs(zipf[k] / 6000 - share) < 0.03 for k, share in expected.items())
    assert sorted(dice.shuffled("abcdef")) == list("abcdef")
