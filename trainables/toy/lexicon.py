"""Concepts and their roots: which meanings there are, and how each language spells them.

Half of the verbs and a third of the adjectives share their root with a noun, names with nouns,
conjunctions with adpositions, and so on: a form alone does not tell the part of speech.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from trainables.toy.dice import Dice
from trainables.toy.languages import LANGUAGES, SOURCE, VERSION, Language

PUNCTUATION = {"stop": ".", "question": "?", "comma": ","}


@dataclass(frozen=True, slots=True)
class Concept:
    """One meaning.

    Attributes:
        name: E.g. `noun-animate-3`.
        upos: Its part of speech.
        root: Name of its root; concepts of one root look alike.
    """

    name: str
    upos: str
    root: str


NOUN_KINDS = ("animate", "thing", "place", "idea")
N_NOUNS = 12
"""Nouns of each kind."""
N_VERBS = 6
"""Verbs of each frame."""
N_ADJECTIVES = 6
"""Adjectives of each kind of noun."""
N_NAMES = 9
"""Roots of names, of each type of entity."""

FRAMES = {
    "act": ("animate", "thing"),
    "meet": ("animate", "animate"),
    "go": ("animate", "place"),
    "be": ("thing", ""),
    "say": ("animate", "clause"),
    "think": ("animate", "idea"),
}
"""Frame of a verb -> kinds of its subject and of its object."""

_CLOSED = {
    "ADP": ("in", "to", "from", "with", "after", "of"),
    "DET": ("the", "a", "this", "that", "some"),
    "PRON": ("she", "they", "this", "that", "who"),
    "AUX": ("be", "have", "will"),
    "PART": ("not",),
    "SCONJ": ("that", "after", "if", "because"),
    "CCONJ": ("and", "or"),
    "NUM": ("one", "two", "three", "many"),
    "ADV": ("very", "now", "here", "often", "some"),
}
"""Words of closed classes; those of one name are of one root."""


def _concepts() -> dict[str, Concept]:
    found = [
        Concept(f"{upos.lower()}-{word}", upos, f"small-{word}")
        for upos, words in _CLOSED.items()
        for word in words
    ]
    nouns = [f"{kind}-{k}" for kind in NOUN_KINDS for k in range(N_NOUNS)]
    found += [Concept(f"noun-{noun}", "NOUN", f"noun-{noun}") for noun in nouns]
    dice = Dice(VERSION, "concepts")
    free = dice.shuffled(nouns)
    for frame in FRAMES:
        for k in range(N_VERBS):
            own = f"verb-{frame}-{k}"
            found.append(Concept(own, "VERB", f"noun-{free.pop()}" if k % 2 else own))
    for kind in NOUN_KINDS:
        for k in range(N_ADJECTIVES):
            own = f"adj-{kind}-{k}"
            found.append(Concept(own, "ADJ", f"noun-{free.pop()}" if k % 3 == 1 else own))
            if k % 3 == 0:
                found.append(Concept(f"adv-{kind}-{k}", "ADV", own))
    for entity in ("PER", "ORG", "LOC"):
        for k in range(N_NAMES):
            own = f"name-{entity}-{k}"
            root = f"noun-{dice.pick(nouns)}" if k % 3 == 2 else f"name-{k}" if k % 3 else own  # noqa: PLR2004
            found.append(Concept(f"propn-{entity}-{k}", "PROPN", root))
    found += [Concept(f"punct-{name}", "PUNCT", f"punct-{name}") for name in PUNCTUATION]
    return {concept.name: concept for concept in found}


CONCEPTS: Mapping[str, Concept] = _concepts()
"""Name -> concept; the same in all languages."""

_ALPHABETS = {
    "Latin": "abdefghijklmnoprstuvz",
    "Cyrillic": "абдефгхижклмнопрстувз",
    "Greek": "αβδεφγχιξκλμνοπρστυθζ",
    "Georgian": "აბდეფგჰიჯკლმნოპრსტუვზ",
}
"""Script -> its letters, in the order of the Latin ones."""

_VOWELS = "aeiou"
_CONSONANTS = "bdfghjklmnprstvz"


def written(word: str, script: str) -> str:
    """A word of Latin letters in another alphabet, letter by letter."""
    return word.translate(str.maketrans(_ALPHABETS["Latin"], _ALPHABETS[script]))


@lru_cache
def roots(code: str) -> Mapping[str, str]:
    """Root -> its form in a language, in Latin letters; all roots of one differ."""
    language = LANGUAGES[code]
    names = list(dict.fromkeys(concept.root for concept in CONCEPTS.values()))
    names = [name for name in names if not name.startswith("punct-")]
    inherited = {} if code == SOURCE else roots(SOURCE)
    kept = _borrowed(language, names) if inherited else set()
    forms = {name: inherited[name] for name in names if name in kept}
    dice, taken = Dice(VERSION, "roots", code), set(forms.values()) | set(inherited.values())
    sounds = _sounds(dice)
    for name in names:
        while name not in forms:
            form = _coin(dice, *sounds, is_short=name.startswith("small-"))
            if form not in taken:
                taken.add(form)
                forms[name] = form
    return forms


def affixes(language: Language) -> Mapping[str, str]:
    """Mark -> affix, in Latin letters. Nouns and verbs share their three affixes, as English -s."""
    if language.affixes == "none":
        return {}
    own = (
        language
        if Dice(VERSION, "affixes-of", language.code).chance(1 - language.shared)
        else LANGUAGES[SOURCE]
    )
    dice = Dice(VERSION, "affixes", own.code)
    ends = dice.shuffled(["as", "it", "en", "ur", "om", "ek"])
    return {
        "plural": ends[0],
        "present": ends[0],
        "object": ends[1],
        "past": ends[1],
        "owner": ends[2],
        "infinitive": ends[2],
    }


def _borrowed(language: Language, names: list[str]) -> set[str]:
    """Roots that a language took over: all names, and its share of each other class."""
    kept = {name for name in names if name.startswith("name-")}
    for start in ("small-", "noun-", "verb-", "adj-"):
        own = Dice(VERSION, "borrowed", start).shuffled(
            [name for name in names if name.startswith(start)]
        )
        kept.update(own[: round(language.shared * len(own))])
    return kept


def _sounds(dice: Dice) -> tuple[str, str]:
    """The consonants and vowels that a language makes its own words of."""
    return "".join(dice.shuffled(_CONSONANTS)[:9]), "".join(dice.shuffled(_VOWELS)[:4])


def _coin(dice: Dice, consonants: str, vowels: str, *, is_short: bool) -> str:
    """A new root: one syllable for small words, two otherwise, some closed."""
    syllables = 1 if is_short else 2
    word = "".join(dice.pick(consonants) + dice.pick(vowels) for _ in range(syllables))
    return word + dice.pick(consonants) if dice.chance(0.5) else word
