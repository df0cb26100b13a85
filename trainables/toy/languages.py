"""The invented languages: what each is made of, and how far two of them lie apart, by construction.

Codes are of the range qaa to qtz, which ISO 639-2 keeps free for private use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

VERSION = 1
"""Raised whenever a sentence of any language changes; part of every seed and folder name."""

SOURCE = "qaa"
"""The language that the others borrow their words from, and that demos are trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One invented language.

    Attributes:
        code: Private-use code.
        name: Invented name.
        verb: Order of subject, verb and object.
        adposition: Before or behind its noun; possessors and relative clauses stand on the side
            that goes with it (behind the noun after prepositions, before it otherwise).
        adjective: Before or behind its noun.
        script: Which alphabet it is written in; letters of all alphabets map one to one.
        shared: Share of the roots taken over from the source language; names are taken over by all.
        affixes: Where number, tense and case are marked.
    """

    code: str
    name: str
    verb: Literal["SVO", "SOV", "VSO"] = "SVO"
    adposition: Literal["before", "behind"] = "before"
    adjective: Literal["before", "behind"] = "before"
    script: str = "Latin"
    shared: float = 1.0
    affixes: Literal["suffix", "prefix", "none"] = "suffix"


_ALL = (
    Language(code="qaa", name="Aren"),
    Language(code="qab", name="Beli", shared=0.8),
    Language(code="qac", name="Caru", shared=0.4),
    Language(code="qad", name="Domi", shared=0.0),
    Language(code="qae", name="Eska", shared=0.4, verb="SOV", adposition="behind"),
    Language(code="qaf", name="Fanu", shared=0.4, verb="VSO", adjective="behind"),
    Language(code="qag", name="Gode", shared=0.4, script="Cyrillic"),
    Language(code="qah", name="Hura", shared=0.4, adjective="behind", affixes="prefix"),
    Language(
        code="qai",
        name="Ilto",
        shared=0.0,
        verb="SOV",
        adposition="behind",
        script="Georgian",
        affixes="prefix",
    ),
    Language(
        code="qaj",
        name="Jame",
        shared=0.0,
        verb="VSO",
        adjective="behind",
        script="Greek",
        affixes="none",
    ),
    Language(code="qak", name="Kivo", shared=0.8, verb="SOV", adposition="behind", affixes="none"),
)

LANGUAGES: Mapping[str, Language] = {language.code: language for language in _ALL}
"""Code -> language."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two languages lie apart; each part is a fraction, 0 where they are alike.

    Attributes:
        order: Share of four questions of order that they answer differently: subject or verb
            first, verb or object first, side of adpositions, side of adjectives.
        lexicon: Share of the roots that are not common to both (expected, where both borrowed).
        script: 1 where they are written in different alphabets.
        affixes: 1 where they are marked on different sides or in one of them only.
    """

    order: float
    lexicon: float
    script: float
    affixes: float

    @property
    def visible(self) -> float:
        """Share of the roots that cannot be seen to be common: all, in another alphabet."""
        return max(self.lexicon, self.script)

    @property
    def total(self) -> float:
        """The mean of the four parts."""
        return (self.order + self.lexicon + self.script + self.affixes) / 4


def distance(one: Language, other: Language) -> Distance:
    """How far two languages lie apart, by construction."""
    answers = [pair[0] != pair[1] for pair in zip(_order(one), _order(other), strict=True)]
    common = 1.0 if one == other else one.shared * other.shared
    return Distance(
        order=sum(answers) / len(answers),
        lexicon=1 - common,
        script=float(one.script != other.script),
        affixes=float(one.affixes != other.affixes),
    )


def distances(source: str = SOURCE) -> dict[str, Distance]:
    """Every language's distance from one of them, itself included."""
    return {code: distance(LANGUAGES[source], language) for code, language in LANGUAGES.items()}


def _order(language: Language) -> tuple[bool, ...]:
    """Answers to the four questions of order."""
    subject, verb, thing = (language.verb.index(letter) for letter in "SVO")
    return (
        subject < verb,
        verb < thing,
        language.adposition == "before",
        language.adjective == "before",
    )
