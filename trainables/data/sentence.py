"""A sentence as its treebank gives it, and the error for a file that is wrong."""

from dataclasses import dataclass


class DataError(Exception):
    """A data file is wrong: says file, line, what, and how to mend it."""

    def __init__(self, where: str, line: int | None, what: str, mend: str) -> None:
        """Build the message `file:line: what. mend`.

        Args:
            where: The file.
            line: 1-based line number; None when the whole file is meant.
            what: What is wrong, with the value, without a full stop.
            mend: How to mend it: one sentence with its full stop.
        """
        place = where if line is None else f"{where}:{line}"
        super().__init__(f"{place}: {what}. {mend}")
        self.where, self.line, self.what, self.mend = where, line, what, mend

    def __reduce__(self) -> tuple[type, tuple[str, int | None, str, str]]:
        """Survive the trip between processes."""
        return type(self), (self.where, self.line, self.what, self.mend)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Syntactic words with their annotation; ranges and empty nodes are not words.

    Attributes:
        sent_id: `# sent_id`; empty where the release has none.
        text: `# text`; the words joined by spaces where the release has none.
        words: FORM of each word, untouched (may hold spaces or be `_`).
        upos: UPOS of each word; empty tuple where the layout has none.
        heads: HEAD of each word, 0 for the root; empty tuple where the layout has none.
        deprels: DEPREL of each word, subtype included; empty tuple where there is none.
        tags: BIO tag of each word; empty tuple where the layout has none.
        line: 1-based line of the sentence's first word in its file.
        orig_id: `# orig_file_sentence`; empty where there is none (D-02).
    """

    sent_id: str
    text: str
    words: tuple[str, ...]
    upos: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()
    deprels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    line: int = 0
    orig_id: str = ""
