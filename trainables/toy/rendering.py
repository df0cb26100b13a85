"""A tree of concepts said in one language: order, forms, tags, heads and entities of its words."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from trainables.data.sentence import Sentence
from trainables.toy.dice import Dice
from trainables.toy.grammar import Node
from trainables.toy.languages import LANGUAGES, Language
from trainables.toy.lexicon import CONCEPTS, PUNCTUATION, affixes, roots, written


def render(root: Node, code: str, sent_id: str) -> Sentence:
    """Say a sentence in a language.

    Args:
        root: Its tree.
        code: Of the language.
        sent_id: Its id, the same in all languages.
    """
    language = LANGUAGES[code]
    nodes = list(_in_order(root, language, _places(code)))
    place = {id(node): number for number, node in enumerate(nodes, 1)}
    head = {id(child): place[id(node)] for node in nodes for child in node.below}
    words = tuple(_form(node, code) for node in nodes)
    return Sentence(
        sent_id=sent_id,
        text=_text(words, nodes),
        words=words,
        upos=tuple(node.upos for node in nodes),
        heads=tuple(head.get(id(node), 0) for node in nodes),
        deprels=tuple(node.deprel for node in nodes),
        tags=_tags(nodes),
    )


def mixed(root: Node, code: str, other: str, share: float, dice: Dice) -> str:
    """Say a sentence as a speaker of two languages may: a text in one, with words of the other.

    Args:
        root: Its tree.
        code: The language that gives the order.
        other: The language that gives some words, with their affixes.
        share: About how many.
        dice: Which.
    """
    nodes = list(_in_order(root, LANGUAGES[code], _places(code)))
    words = tuple(_form(node, other if dice.chance(share) else code) for node in nodes)
    return _text(words, nodes)


def _in_order(node: Node, language: Language, places: Mapping[str, float]) -> Iterator[Node]:
    """The words of a subtree from first to last."""
    placed = sorted(((_place(child, node, places), k) for k, child in enumerate(node.below)))
    for place, k in placed:
        if place < 0:
            yield from _in_order(node.below[k], language, places)
    yield node
    for place, k in placed:
        if place > 0:
            yield from _in_order(node.below[k], language, places)


def _place(child: Node, head: Node, places: Mapping[str, float]) -> float:
    if child.deprel == "advmod" and head.upos == "ADJ" and child.concept == "adv-very":
        return -1
    if child.concept == "part-not":
        return places["not"]
    return places[child.deprel]


@lru_cache
def _places(code: str) -> Mapping[str, float]:
    """Relation -> where it stands to its head: negative before, positive behind, small is near."""
    language = LANGUAGES[code]
    is_early = language.verb != "SOV"  # the verb comes before its object
    pre = language.adposition == "before"
    return {
        "det": -5,
        "nummod": -4,
        "amod": -3 if language.adjective == "before" else 1,
        "flat": 0.5,
        "nmod": 3 if pre else -6,
        "acl:relcl": 5 if pre else -7,
        "case": -20 if pre else 8,
        "cc": -30,
        "conj": 9,
        "nsubj": 2 if language.verb == "VSO" else -12,
        "cop": -11.5 if language.verb == "VSO" else (-10 if is_early else 2),
        "aux": -10 if is_early else 2,
        "not": -9.5 if is_early else 1.5,
        "advmod": 6.5 if is_early else -10.2,
        "obj": 4 if is_early else -10.5,
        "obl": 6 if is_early else -11,
        "ccomp": 7 if is_early else -10.4,
        "advcl": 8 if is_early else -13,
        "mark": -29 if is_early else 28,
        "punct": 30,
    }


@lru_cache(maxsize=65536)
def _spelled(concept: str, mark: str, code: str) -> str:
    language = LANGUAGES[code]
    root = CONCEPTS[concept].root
    if root.startswith("punct-"):
        return PUNCTUATION[root.removeprefix("punct-")]
    form, affix = roots(code)[root], affixes(language).get(mark, "")
    return written(affix + form if language.affixes == "prefix" else form + affix, language.script)


def _form(node: Node, code: str) -> str:
    return _spelled(node.concept, node.mark, code)


def _text(words: tuple[str, ...], nodes: list[Node]) -> str:
    """Words with spaces between them, none before punctuation."""
    parts = [
        word if node.upos == "PUNCT" else f" {word}"
        for word, node in zip(words, nodes, strict=True)
    ]
    return "".join(parts).strip()


def _tags(nodes: list[Node]) -> tuple[str, ...]:
    """IOB2 tags: a name begins at its first word."""
    tags = []
    for number, node in enumerate(nodes):
        goes_on = number > 0 and node.deprel == "flat" and nodes[number - 1].entity == node.entity
        tags.append(f"{'I' if goes_on else 'B'}-{node.entity}" if node.entity else "O")
    return tuple(tags)
