"""Files with one word and its tag a line -> sentences: named entities, and XTREME's POS files.

The layouts differ in what separates the columns and what stands in them; each has a reader, and
none guesses: a file in another layout is refused at its first line that does not fit.

    wikiann     en:Sioux TAB B-ORG           Rahimi et al. (2019) splits, files without ending
    panx        Sioux TAB B-ORG              the same data in XTREME; test files may have no tags
    uner        1 TAB Sioux TAB B-ORG TAB - TAB annotator, `#` comments      Universal NER
    masakhaner  Sioux SPACE B-ORG            MasakhaNER 1.0
    conll       Sioux NNP B-NP B-ORG         CoNLL 2002 and 2003: word first, tag last
    udpos       Sioux TAB PROPN              XTREME's part-of-speech files

A `#` begins a comment in uner only; elsewhere it is a word. Tags are kept as they stand; scoring
says what a broken span means (`check_bio` finds one).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from trainables.data.conllu import check_upos
from trainables.data.lines import Line, blocks, check_limit, read_lines
from trainables.data.sentence import DataError, Sentence

_TAG = re.compile(r"O|[BI]-\S+")
_SHAPE = "Check the layout of the file: this one has '{}' in each line."


def read_wikiann(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read `lang:token TAB tag`; the prefix, the same in all lines, is taken off.

    Raises:
        DataError: the file is in another layout, or is empty.
    """
    prefix = ""

    def parse(block: Sequence[Line]) -> Sentence:
        nonlocal prefix
        rows = _columns(block, path, "\t", (2,), "lang:token TAB tag")
        words = []
        for number, (word, _) in rows:
            language, colon, rest = word.partition(":")
            prefix = prefix or language
            if not colon or language != prefix:
                what = f"'{word}' does not begin with '{prefix if colon else 'lang'}:'"
                raise DataError(path, number, what, _SHAPE.format("lang:token TAB tag"))
            if not rest:
                what = f"'{word}' has no characters after its language"
                raise DataError(path, number, what, "Take the line out.")
            words.append((number, rest))
        return _tagged(words, [(number, cells[1]) for number, cells in rows], path)

    return _read(path, limit, parse)


def read_panx(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read `token TAB tag`, or `token` in a test file without tags (then `tags` is empty).

    Raises:
        DataError: the file is in another layout, mixes lines with and without tag, or is empty.
    """
    n_columns = 0

    def parse(block: Sequence[Line]) -> Sentence:
        nonlocal n_columns
        rows = _columns(block, path, "\t", (1, 2), "token TAB tag")
        for number, cells in rows:
            n_columns = n_columns or len(cells)
            if len(cells) != n_columns:
                what = "lines with and without tag"
                raise DataError(path, number, what, "Give every token a tag, or none.")
            if n_columns == 1 and " " in cells[0]:
                raise DataError(
                    path, number, f"'{cells[0]}' is not one token", _SHAPE.format("token")
                )
        words = [(number, cells[0]) for number, cells in rows]
        return _tagged(words, [(n, cells[1]) for n, cells in rows if n_columns > 1], path)

    return _read(path, limit, parse)


def read_masakhaner(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read `token SPACE tag`.

    Raises:
        DataError: the file is in another layout, or is empty.
    """

    def parse(block: Sequence[Line]) -> Sentence:
        rows = _columns(block, path, " ", (2,), "token SPACE tag")
        words = [(number, cells[0]) for number, cells in rows]
        return _tagged(words, [(number, cells[-1]) for number, cells in rows], path)

    return _read(path, limit, parse)


def read_conll(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read columns separated by blanks, of which the first is the word and the last its tag.

    `-DOCSTART-` lines are left out; the middle columns are not looked at.

    Raises:
        DataError: the file is in another layout, or is empty.
    """
    shapes = (2, 3, 4, 5)

    def parse(block: Sequence[Line]) -> Sentence | None:
        spaced = [(number, " ".join(text.split())) for number, text in block]
        rows = _columns(spaced, path, " ", shapes, "token ... tag")
        rows = [(number, cells) for number, cells in rows if cells[0] != "-DOCSTART-"]
        words = [(number, cells[0]) for number, cells in rows]
        tags = [(number, cells[-1]) for number, cells in rows]
        return _tagged(words, tags, path) if rows else None

    return _read(path, limit, parse)


def read_uner(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read Universal NER: `index TAB token TAB tag TAB - TAB annotator` below `#` comments.

    Raises:
        DataError: the file is in another layout, an index is out of order, or it is empty.
    """

    def parse(block: Sequence[Line]) -> Sentence:
        comments = [text for _, text in block if text.startswith("#")]
        rows = [(number, text) for number, text in block if not text.startswith("#")]
        if not rows:
            what = "a sentence without words"
            raise DataError(path, block[0][0], what, "Fetch the file again; it may be cut short.")
        shape = "index TAB token TAB tag TAB - TAB annotator"
        table = _columns(rows, path, "\t", (5,), shape)
        for expected, (number, cells) in enumerate(table, 1):
            if cells[0] != str(expected):
                what = f"index '{cells[0]}' where {expected} was expected"
                raise DataError(path, number, what, "Check that blank lines part the sentences.")
        about = dict(_comment(text) for text in comments)
        words = [(number, cells[1]) for number, cells in table]
        tags = [(number, cells[2]) for number, cells in table]
        sentence = _tagged(words, tags, path)
        text = about.get("text") or sentence.text
        return replace(sentence, sent_id=about.get("sent_id", ""), text=text)

    return _read(path, limit, parse)


def read_udpos(path: str, limit: int | None = None) -> tuple[Sentence, ...]:
    """Read XTREME's `token TAB UPOS`, where multiword tokens are fused.

    Raises:
        DataError: the file is in another layout, a tag is none of UD's, or it is empty.
    """

    def parse(block: Sequence[Line]) -> Sentence:
        rows = _columns(block, path, "\t", (2,), "token TAB UPOS")
        words = [(number, cells[0]) for number, cells in rows]
        tags = tuple(cells[1] for _, cells in rows)
        check_upos([number for number, _ in rows], tags, path)
        return _sentence(words, upos=tags)

    return _read(path, limit, parse)


def check_bio(sentence: Sentence) -> str | None:
    """The first tag that IOB2 does not allow: an I- that goes on from nothing; None if all is well.

    Such tags are legal to read: lenient scoring (conlleval) opens a span at them, strict scoring
    does not.
    """
    before = "O"
    for position, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True), 1):
        if tag.startswith("I-") and before[1:] != tag[1:]:
            return f"word {position} ('{word}') has {tag} after {before}"
        before = tag
    return None


def _read(
    path: str, limit: int | None, parse: Callable[[Sequence[Line]], Sentence | None]
) -> tuple[Sentence, ...]:
    check_limit(limit)
    parsed = (parse(block) for block in blocks(read_lines(path)))
    sentences = tuple(islice((sentence for sentence in parsed if sentence), limit))
    if not sentences:
        raise DataError(path, None, "the file holds no sentence", "Fetch it again.")
    return sentences


def _columns(
    block: Sequence[Line], path: str, separator: str, widths: Sequence[int], shape: str
) -> list[tuple[int, list[str]]]:
    """Cut lines into columns and refuse other numbers of them than `widths`, and empty ones."""
    rows = [(number, text.split(separator)) for number, text in block]
    for number, cells in rows:
        if len(cells) not in widths or "" in cells:
            n = len(cells)
            what = f"{n} column{'s' * (n > 1)}{', one of them empty' if '' in cells else ''}"
            raise DataError(path, number, what, _SHAPE.format(shape))
    return rows


def _comment(text: str) -> tuple[str, str]:
    key, _, value = text.removeprefix("#").partition("=")
    return key.strip(), value.strip()


def _tagged(words: Sequence[Line], tags: Sequence[Line], path: str) -> Sentence:
    for number, tag in tags:
        if not _TAG.fullmatch(tag):
            what = f"tag '{tag}' is neither O nor B-... nor I-..."
            raise DataError(path, number, what, "Check the layout, or convert the tags to BIO.")
    return _sentence(words, tags=tuple(tag for _, tag in tags))


def _sentence(
    words: Sequence[Line], *, tags: tuple[str, ...] = (), upos: tuple[str, ...] = ()
) -> Sentence:
    forms = tuple(word for _, word in words)
    return Sentence(
        sent_id="", text=" ".join(forms), words=forms, upos=upos, tags=tags, line=words[0][0]
    )
