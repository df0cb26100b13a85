"""A text, or a pair of texts, with its class."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What a sentence classifier reads; the counterpart of `Sentence`.

    Attributes:
        text: First or only text (premise, sentence 1, document).
        pair: Second text (hypothesis, sentence 2); empty where the layout has none.
        label: Its class as the file spells it; empty in a test file without classes.
        example_id: Id in its file; empty where the layout has none.
        language: Language as the file spells it; empty where the layout has none.
        line: 1-based line on which it starts.
    """

    text: str
    pair: str = ""
    label: str = ""
    example_id: str = ""
    language: str = ""
    line: int = 0
