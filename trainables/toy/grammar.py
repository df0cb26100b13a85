"""A small probabilistic grammar: sentences as trees of concepts, before any language says them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from trainables.toy.dice import Dice
from trainables.toy.languages import VERSION
from trainables.toy.lexicon import CONCEPTS, FRAMES, N_ADJECTIVES, N_NAMES, N_NOUNS, N_VERBS

DEEPEST = 2
"""Clauses and noun phrases within each other."""


@dataclass(slots=True)
class Node:
    """A concept in a sentence, and what hangs on it.

    Attributes:
        concept: Its name.
        deprel: Its relation to the node above.
        marks: What an affix says of it: `plural`, `object`, `owner`, `present`, `past`,
            `infinitive`; empty for nothing.
        entity: PER, ORG or LOC where it is a part of a name.
        below: What hangs on it.
    """

    concept: str
    deprel: str
    mark: str = ""
    entity: str = ""
    below: list["Node"] = field(default_factory=list)

    @property
    def upos(self) -> str:
        """Part of speech of the concept."""
        return CONCEPTS[self.concept].upos


def sentences(purpose: str, count: int) -> Iterator[Node]:
    """The first `count` sentences of one purpose; each is drawn from a stream of its own."""
    for number in range(count):
        yield sentence(Dice(VERSION, "sentence", purpose, number))


def sentence(dice: Dice) -> Node:
    """One sentence: the root of its tree."""
    root = _clause(dice, 0)
    root.deprel = "root"
    if dice.chance(0.15):
        second = _clause(dice, 1)
        second.deprel = "conj"
        second.below.append(Node(dice.pick(("cconj-and", "cconj-or")), "cc"))
        root.below.append(second)
    is_question = dice.chance(0.12)
    root.below.append(Node("punct-question" if is_question else "punct-stop", "punct"))
    return root


def _clause(dice: Dice, depth: int) -> Node:
    """A clause; its head is a verb, or an adjective with a copula."""
    head = _equation(dice, depth) if dice.chance(0.2) else _action(dice, depth)
    if dice.chance(0.18):
        head.below.append(Node("part-not", "advmod"))
    if depth < DEEPEST and dice.chance(0.12):
        other = _clause(dice, depth + 1)
        other.deprel = "advcl"
        other.below.append(Node(dice.pick(("sconj-after", "sconj-if", "sconj-because")), "mark"))
        head.below.append(other)
    return head


def _equation(dice: Dice, depth: int) -> Node:
    kind = dice.pick(("animate", "thing", "place", "idea"))
    head = Node(_adjective(dice, kind), "root")
    head.below += [_noun_phrase(dice, kind, "nsubj", depth), Node("aux-be", "cop")]
    if dice.chance(0.3):
        head.below.append(Node("adv-very", "advmod"))
    return head


def _action(dice: Dice, depth: int) -> Node:
    frame = dice.pick(tuple(FRAMES))
    subject, thing = FRAMES[frame]
    head = Node(f"verb-{frame}-{dice.zipf(range(N_VERBS))}", "root")
    has_auxiliary = dice.chance(0.3)
    head.mark = "infinitive" if has_auxiliary else dice.pick(("present", "past"))
    head.below.append(_noun_phrase(dice, subject, "nsubj", depth))
    if has_auxiliary:
        head.below.append(Node(dice.pick(("aux-have", "aux-will")), "aux"))
    if thing == "clause" and depth < DEEPEST:
        said = _clause(dice, depth + 1)
        said.deprel = "ccomp"
        said.below.append(Node("sconj-that", "mark"))
        head.below.append(said)
    elif thing == "place":
        head.below.append(_adpositional(dice, "place", "obl", ("adp-to", "adp-from"), depth))
    elif thing:
        kind = "thing" if thing == "clause" else thing
        head.below.append(_noun_phrase(dice, kind, "obj", depth))
    if dice.chance(0.25):
        head.below.append(_adpositional(dice, "place", "obl", ("adp-in", "adp-after"), depth))
    if dice.chance(0.25):
        word = dice.pick(
            (
                "adv-now",
                "adv-here",
                "adv-often",
                "adv-some",
                "adv-animate-0",
                "adv-animate-3",
                "adv-thing-0",
                "adv-idea-3",
            )
        )
        head.below.append(Node(word, "advmod"))
    return head


def _adpositional(dice: Dice, kind: str, deprel: str, words: tuple[str, ...], depth: int) -> Node:
    head = _noun_phrase(dice, kind, deprel, depth + 1)
    head.below.append(Node(dice.pick(words), "case"))
    return head


def _noun_phrase(dice: Dice, kind: str, deprel: str, depth: int) -> Node:
    """A noun with what goes with it, a name, or a pronoun."""
    if kind in ("animate", "place") and dice.chance(0.3):
        return _name(dice, kind, deprel)
    if deprel in ("nsubj", "obj") and dice.chance(0.2):
        return Node(dice.pick(("pron-she", "pron-they", "pron-this", "pron-that")), deprel)
    head = Node(f"noun-{kind}-{dice.zipf(range(N_NOUNS))}", deprel)
    number = dice.chance(0.12)
    if number or dice.chance(0.25):
        head.mark = "plural"
    elif deprel == "obj":
        head.mark = "object"
    if number:
        head.below.append(
            Node(dice.pick(("num-one", "num-two", "num-three", "num-many")), "nummod")
        )
    elif dice.chance(0.7):
        head.below.append(
            Node(dice.zipf(("det-the", "det-a", "det-this", "det-that", "det-some")), "det")
        )
    if dice.chance(0.3):
        adjective = Node(_adjective(dice, kind), "amod")
        if dice.chance(0.15):
            adjective.below.append(Node("adv-very", "advmod"))
        head.below.append(adjective)
    if depth < DEEPEST:
        _extend(dice, head, kind, depth)
    return head


def _extend(dice: Dice, head: Node, kind: str, depth: int) -> None:
    """Possessor, relative clause, or a second noun."""
    if dice.chance(0.12):
        owner = _adpositional(dice, "animate", "nmod", ("adp-of",), depth + 1)
        head.below.append(owner)
    elif kind == "animate" and dice.chance(0.1):
        verb = Node(f"verb-act-{dice.zipf(range(N_VERBS))}", "acl:relcl", mark="past")
        verb.below += [Node("pron-who", "nsubj"), _noun_phrase(dice, "thing", "obj", DEEPEST)]
        head.below.append(verb)
    elif dice.chance(0.08):
        second = _noun_phrase(dice, kind, "conj", DEEPEST)
        second.below.append(Node("cconj-and", "cc"))
        head.below.append(second)


def _name(dice: Dice, kind: str, deprel: str) -> Node:
    entity = "LOC" if kind == "place" else dice.pick(("PER", "PER", "ORG"))
    first = Node(f"propn-{entity}-{dice.zipf(range(N_NAMES))}", deprel, entity=entity)
    if entity != "LOC" and dice.chance(0.4):
        first.below.append(
            Node(f"propn-{entity}-{dice.zipf(range(N_NAMES))}", "flat", entity=entity)
        )
    return first


def _adjective(dice: Dice, kind: str) -> str:
    return f"adj-{kind}-{dice.zipf(range(N_ADJECTIVES))}"
