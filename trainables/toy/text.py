"""Raw text of the invented languages: what their tiny encoder was pretrained on.

Two thirds of the lines are sentences of one language. One third are sentences of speakers of two:
the order of one language, but some words, with their affixes, come from another, as bilinguals do.
They are there to help so small an encoder to find, in a short training, which words of unrelated
languages belong together.
"""

from collections.abc import Iterator

from trainables.toy.dice import Dice
from trainables.toy.grammar import sentences
from trainables.toy.languages import LANGUAGES, VERSION
from trainables.toy.rendering import mixed, render

MIXED = 0.35
"""Share of the lines that are of two languages."""

BORROWED = 0.4
"""In such a line: share of the words that come from the other language."""


def raw_text(n_lines: int) -> Iterator[str]:
    """Lines of text, all languages in turn; no sentence of the treebanks is among them by intent.

    Args:
        n_lines: How many; the first lines of a longer text are those of a shorter one.
    """
    codes = tuple(LANGUAGES)
    for k, tree in enumerate(sentences("raw", n_lines)):
        dice = Dice(VERSION, "raw", k)
        own = codes[k % len(codes)]
        if dice.chance(MIXED):
            other = dice.pick([code for code in codes if code != own])
            yield mixed(tree, own, other, BORROWED, dice)
        else:
            yield render(tree, own, "").text
