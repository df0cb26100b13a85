"""CoNLL-U files -> sentences; the `conllu` package parses, this file checks and says where.

Format: https://universaldependencies.org/format.html, both versions of UD. Blocks of lines are
checked before the package sees them, because it accepts seven columns, splits words at two
spaces, and knows no line numbers.
"""

import difflib
import re
from collections.abc import Sequence
from itertools import islice

from conllu.models import Token
from conllu.parser import parse_token_and_metadata

from trainables.data.lines import Line, blocks, check_limit, read_lines
from trainables.data.sentence import DataError, Sentence

_TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
UPOS_TAGS = frozenset({*_TAGS.split(" "), "CONJ", "_"})
"""UD version 1 has CONJ where version 2 has CCONJ; `_` is "not annotated"."""

_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel")
_COLUMNS = tuple(name.upper() for name in (*_FIELDS, "deps", "misc"))

_AS_IS = dict.fromkeys(("id", "xpos", "feats", "head"), lambda columns, i: columns[i])
"""The package parses FEATS, DEPS and MISC into dictionaries; we need none of them (2.7x faster)."""

_ID = re.compile(r"(0|[1-9][0-9]{0,8})(?:([-.])([1-9][0-9]{0,8}))?")
_HEAD = re.compile(r"0|[1-9][0-9]{0,8}")
_WHOLE = "Check that the file is a whole UD release file."


def read_conllu(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read syntactic words with tags and heads; ranges `a-b` and empty nodes `a.b` are no words.

    Read as they are: CR LF, a byte order mark, a missing line end at the end, comments with tabs
    or without `=` (UD version 1), words that hold spaces or are `_`, sentences with several roots
    (see `check_tree`), and sentences in which no word has a head.

    Args:
        path: The file.
        limit: Stop after so many sentences; what follows is neither read nor checked.

    Raises:
        DataError: the file cannot be read, holds no sentence, or breaks the format.
        ValueError: `limit` is less than 1.
    """
    check_limit(limit)
    found = islice(blocks(read_lines(path)), limit)
    sentences = tuple(_sentence(block, path) for block in found)
    if not sentences:
        raise DataError(path, None, "the file holds no sentence", "Fetch it again.")
    return sentences


def check_tree(sentence: Sentence) -> str | None:
    """What keeps a sentence from being one tree under one root; None if it is one.

    For readers that need trees (parsing); a tagger reads forests and cycles as well.
    """
    heads = sentence.heads
    if len(heads) != len(sentence.words):
        return f"{len(sentence.words)} words have {len(heads)} heads"
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    if len(roots) > 1:
        return f"words {', '.join(map(str, roots))} are all roots"
    cycle = find_cycle(heads)
    return f"words {' -> '.join(map(str, [*cycle, cycle[0]]))} form a cycle" if cycle else None


def find_cycle(heads: Sequence[int]) -> list[int]:
    """Words, counted from 1, that hang on each other in a circle; empty if all hang on the root."""
    clear = {0}  # words from which the root was reached
    for start in range(1, len(heads) + 1):
        path: list[int] = []
        seen: set[int] = set()
        word = start
        while word not in clear:
            if word in seen:
                return path[path.index(word) :]
            path.append(word)
            seen.add(word)
            word = heads[word - 1]
        clear.update(path)
    return []


def _sentence(block: list[Line], path: str) -> Sentence:
    rows = [(number, text) for number, text in block if not text.startswith("#")]
    if not rows:
        what = "a sentence without words"
        raise DataError(path, block[0][0], what, "Remove its comments, or fetch the file again.")
    for number, text in block:
        if text.startswith("#"):
            _check_comment(number, text, path)
        else:
            _check_columns(number, text, path)
    # The package ends a column at two spaces. Zero bytes are free: `read_lines` refuses them.
    source = "\n".join(t if t[0] == "#" else t.replace("  ", "\0\0") for _, t in block)
    parsed = parse_token_and_metadata(
        source, _FIELDS, _AS_IS, metadata_parsers={"__fallback__": _comment}
    )
    words = _words(list(zip((number for number, _ in rows), parsed, strict=True)), path)
    numbers = [number for number, _ in words]
    tokens = [token for _, token in words]
    forms = tuple(_column(token, "form") for token in tokens)
    deprels = tuple(_column(token, "deprel") for token in tokens)
    tags = tuple(token["upos"] for token in tokens)
    check_upos(numbers, tags, path)
    comments = parsed.metadata
    return Sentence(
        sent_id=comments.get("sent_id") or "",
        text=comments.get("text") or " ".join(forms),
        words=forms,
        upos=tags,
        heads=_heads(numbers, tokens, path),
        deprels=deprels if set(deprels) != {"_"} else (),
        line=numbers[0],
        orig_id=comments.get("orig_file_sentence") or "",
    )


def _comment(key: str, value: str | None) -> tuple[str, str]:
    """Split `# sent_id s1`, as UD version 1 and `orig_file_sentence` have it, at its space."""
    if value is not None:
        return key, value
    name, _, rest = key.partition(" ")
    return name, rest.strip()


def _column(token: Token, name: str) -> str:
    value: str = token[name]
    return value.replace("\0", " ")


def _check_columns(number: int, text: str, path: str) -> None:
    """Refuse a word line that has not ten columns with something in each."""
    cells = text.split("\t")
    if len(cells) != len(_COLUMNS):
        what = f"{len(cells)} column{'s' * (len(cells) > 1)} instead of {len(_COLUMNS)}"
        if len(cells) == 1 and "  " in text:
            what += " (separated by spaces instead of tabs?)"
        mend = "Check that the file is whole; columns are separated by one tab each."
        raise DataError(path, number, what, mend)
    if "" in cells or not cells[7].strip():  # the package strips lines: a blank DEPREL would go
        name = _COLUMNS[cells.index("") if "" in cells else 7]
        what = f"column {name} is empty"
        raise DataError(path, number, what, "Write _ where nothing is annotated.")
    if not "0" <= text[0] <= "9":
        raise DataError(path, number, f"id '{cells[0]}' is none of 7, 7-8 and 7.1", _WHOLE)


def _check_comment(number: int, text: str, path: str) -> None:
    """Refuse CoNLL-U Plus with columns of its own."""
    _, is_plus, named = text.partition("global.columns =")
    if is_plus and tuple(named.upper().split()) != _COLUMNS:
        what = f"CoNLL-U Plus with the columns {named.strip()}"
        raise DataError(path, number, what, f"Convert it to {' '.join(_COLUMNS)}.")


def _words(rows: Sequence[tuple[int, Token]], path: str) -> list[tuple[int, Token]]:
    """The rows that are words, after a check that ids count up and ranges lie within."""
    words: list[tuple[int, Token]] = []
    covered, empty, ranges = 0, 0, 0  # last word of the last range; last empty node; line of range
    for number, token in rows:
        match = _ID.fullmatch(token["id"])
        if match is None:
            what = f"id '{token['id']}' is none of 7, 7-8 and 7.1"
            raise DataError(path, number, what, _WHOLE)
        first, kind, second = int(match[1]), match[2], int(match[3] or 0)
        expected = len(words) + 1
        if kind is None:
            if first != expected:
                hint = "Is a blank line missing before this sentence?" if first == 1 else _WHOLE
                raise DataError(path, number, f"id {first} where {expected} was expected", hint)
            words.append((number, token))
            empty = 0
        elif kind == "-":
            if first != expected or second < first or first <= covered:
                what = f"range {first}-{second} before word {expected}"
                raise DataError(path, number, what, "A range stands before its first word, once.")
            covered, ranges = second, number
        else:
            if first != expected - 1 or second != empty + 1:
                what = f"empty node {first}.{second} after word {expected - 1}"
                mend = f"{expected - 1}.{empty + 1} was expected here."
                raise DataError(path, number, what, mend)
            empty = second
    if not words:
        raise DataError(path, rows[0][0], "a sentence without words", _WHOLE)
    if covered > len(words):
        what = f"a range up to {covered} in a sentence of {len(words)} words"
        raise DataError(path, ranges, what, _WHOLE)
    return words


def check_upos(numbers: Sequence[int], tags: Sequence[str], path: str) -> None:
    """Refuse what is no universal part-of-speech tag.

    Raises:
        DataError: a tag is none of UD's; `numbers` are the lines of `tags`.
    """
    if UPOS_TAGS.issuperset(tags):
        return
    number, tag = next((n, t) for n, t in zip(numbers, tags, strict=True) if t not in UPOS_TAGS)
    close = difflib.get_close_matches(tag.upper(), sorted(UPOS_TAGS), n=1)
    hint = f"Did you mean {close[0]}?" if close else "Check that the column holds UPOS."
    raise DataError(path, number, f"'{tag}' is no universal part-of-speech tag", hint)


def _heads(numbers: Sequence[int], tokens: Sequence[Token], path: str) -> tuple[int, ...]:
    """HEAD of each word; empty when none has one."""
    raw = [token["head"] for token in tokens]
    if raw.count("_") == len(raw):
        return ()
    n_words = len(raw)
    heads = []
    for number, value in zip(numbers, raw, strict=True):
        if value == "_":
            what = "a word without head among words with one"
            raise DataError(path, number, what, "Annotate all words of a sentence or none.")
        if not _HEAD.fullmatch(value):
            what = f"head '{value}' is not a number"
            raise DataError(path, number, what, "Write the id of a word, 0 for the root.")
        if int(value) > n_words:
            what = f"head {value} in a sentence of {n_words} word{'s' * (n_words > 1)}"
            raise DataError(path, number, what, _WHOLE)
        heads.append(int(value))
    return tuple(heads)
