from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainables.data.conllu import UPOS_TAGS, check_tree, read_conllu
from trainables.data.sentence import DataError, Sentence


def row(number, form="w", upos="NOUN", head="0", deprel="root"):
    """One word line without its line end."""
    return "\t".join([str(number), form, "_", upos, "_", "_", str(head), deprel, "_", "_"])


ONE = row(1)
TWO = row(2, head=1, deprel="obj")
GOOD = f"# sent_id = s1\n{ONE}\n{TWO}\n\n"
NINE = "\t".join(ONE.split("\t")[:9])


@pytest.fixture
def read(tmp_path):
    """Write a text or bytes to a file and read it."""

    def from_text(content, limit=None):
        path = tmp_path / "xx_toy-ud-test.conllu"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_conllu(str(path), limit)

    return from_text


BROKEN = {
    "no byte at all": ("", None, "holds no sentence"),
    "only blank lines": ("\n\n\n", None, "holds no sentence"),
    "only a byte order mark": ("\ufeff", None, "holds no sentence"),
    "nine columns": (f"{NINE}\n\n", 1, "9 columns instead of 10"),
    "eleven columns": (f"# c\n{ONE}\t_\n\n", 2, "11 columns instead of 10"),
    "a second sentence with nine columns": (f"{GOOD}{NINE}\n\n", 5, "9 columns"),
    "spaces for tabs": (f"{GOOD}{ONE.replace(chr(9), '  ')}\n\n", 5, "spaces instead of tabs"),
    "a line of prose": (f"{GOOD}Hello world\n\n", 5, "1 column instead of 10"),
    "cut in the middle of a word": (f"{GOOD}{ONE}\n2\tw\t_", 6, "3 columns"),
    "cut after a whole line": (f"{GOOD}{row(1, head=3)}\n{TWO}\n", 5, "head 3 in a sentence of 2"),
    "cut after comments": (f"{GOOD}# sent_id = s2\n# text = a", 5, "without words"),
    "comments alone in the middle": (f"# a\n\n{GOOD}", 1, "without words"),
    "only a range": (f"# a\n{row('1-2', head='_')}\n\n", 2, "without words"),
    "only an empty node": (f"{row('0.1', head='_')}\n\n", 1, "without words"),
    "an empty word": (f"{row(1, form='')}\n\n", 1, "column FORM is empty"),
    "an empty label": (f"{ONE}\n{row(2, head=1, deprel='')}\n\n", 2, "column DEPREL is empty"),
    "an empty last column": (f"{ONE[:-1]}\n\n", 1, "column MISC is empty"),
    "a tab before the id": (f"\t{NINE}\n\n", 1, "column ID is empty"),
    "blank last columns": ("1\tw\t_\tX\t_\t_\t0\t \t \t \n\n", 1, "column DEPREL is empty"),
    "a letter for an id": (f"{row('a')}\n\n", 1, "id 'a' is none of"),
    "an id of zero": (f"{row(0)}\n\n", 1, "id 0 where 1 was expected"),
    "an id with a leading zero": (f"{row('01')}\n\n", 1, "id '01' is none of"),
    "a negative id": (f"{row('-1')}\n\n", 1, "id '-1' is none of"),
    "an id with a blank": (f"{row(' 1')}\n\n", 1, "id ' 1' is none of"),
    "a whole number with a point": (f"{row('1.0')}\n\n", 1, "id '1.0' is none of"),
    "an id in other digits": (f"{row(chr(0x661))}\n\n", 1, "is none of"),
    "an id of ten digits": (f"{row(10**9)}\n\n", 1, "is none of"),
    "an id left out": (f"{ONE}\n{row(3, head=1)}\n\n", 2, "id 3 where 2 was expected"),
    "an id twice": (f"{ONE}\n{ONE}\n\n", 2, "id 1 where 2 was expected"),
    "ids that fall": (f"{TWO}\n{ONE}\n\n", 1, "id 2 where 1 was expected"),
    "a blank line left out": (f"{ONE}\n{TWO}\n# sent_id = s2\n{ONE}\n\n", 4, "id 1 where 3"),
    "a blank line too many": (f"{ONE}\n\n{TWO}\n\n", 3, "id 2 where 1 was expected"),
    "a range after its word": (f"{ONE}\n{row('1-2', head='_')}\n{TWO}\n\n", 2, "range 1-2 before"),
    "a range that falls": (f"{row('2-1', head='_')}\n{ONE}\n{TWO}\n\n", 1, "range 2-1 before"),
    "a range twice": (
        f"{row('1-2')}\n{row('1-2')}\n{ONE}\n{TWO}\n\n",
        2,
        "range 1-2 before word 1",
    ),
    "ranges that overlap": (
        f"{row('1-2')}\n{ONE}\n{row('2-3')}\n{TWO}\n{row(3, head=1)}\n\n",
        3,
        "range 2-3 before word 2",
    ),
    "a range past the end": (f"{ONE}\n{row('2-3', head='_')}\n{TWO}\n\n", 2, "a range up to 3"),
    "an empty node too early": (f"{row('1.1')}\n{ONE}\n\n", 1, "empty node 1.1 after word 0"),
    "an empty node left out": (f"{ONE}\n{row('1.2')}\n\n", 2, "empty node 1.2 after word 1"),
    "a head outside": (f"{ONE}\n{row(2, head=9)}\n\n", 2, "head 9 in a sentence of 2 words"),
    "a head outside one word": (f"{row(1, head=2)}\n\n", 1, "head 2 in a sentence of 1 word"),
    "a negative head": (f"{row(1, head=-1)}\n\n", 1, "head '-1' is not a number"),
    "a head in letters": (f"{row(1, head='root')}\n\n", 1, "head 'root' is not a number"),
    "a head like 1.0": (f"{ONE}\n{row(2, head='1.0')}\n\n", 2, "head '1.0' is not a number"),
    "one head missing": (f"{ONE}\n{row(2, head='_')}\n\n", 2, "a word without head"),
    "a misspelt tag": (f"{ONE}\n{row(2, upos='NOUNN', head=1)}\n\n", 2, "'NOUNN' is no universal"),
    "a language's own tag": (f"{row(1, upos='NN')}\n\n", 1, "'NN' is no universal"),
    "a tag in small letters": (f"{row(1, upos='noun')}\n\n", 1, "'noun' is no universal"),
    "Latin-1": (f"{GOOD}{row(1, form='é')}\n\n".encode("latin-1"), 5, "not UTF-8 (byte 0xe9 at"),
    "UTF-16": (GOOD.encode("utf-16"), 1, "not UTF-8 (byte 0xff at position 1)"),
    "a character cut in two": (f"{GOOD}1\té".encode()[:-1], 5, "byte 0xc3 at position 3"),
    "compressed": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", 1, "not UTF-8 (byte 0x8b at position 2)"),
    "old Macintosh line ends": (GOOD.replace("\n", "\r"), 1, "a carriage return"),
    "a zero byte": (f"{GOOD}{row(1, form='a' + chr(0))}\n\n", 5, "a zero byte"),
    "zeros after a crash": (GOOD.encode() + bytes(512), 5, "a zero byte"),
    "a byte order mark in the middle": (f"{GOOD}\ufeff{GOOD}", 5, "1 column instead of 10"),
    "columns of its own": (
        f"# global.columns = ID FORM UPOS\n1\tw\tX\n\n",  # noqa: F541 - a neighbour of f-strings
        1,
        "CoNLL-U Plus",
    ),
    "columns in another order": (
        f"# a\n# global.columns = ID FORM LEMMA XPOS UPOS FEATS HEAD DEPREL DEPS MISC\n{ONE}\n\n",
        2,
        "CoNLL-U Plus",
    ),
    "a web page": ("<!DOCTYPE html>\n<html>\n", 1, "1 column instead of 10"),
}


@pytest.mark.parametrize(("content", "line", "what"), BROKEN.values(), ids=BROKEN)
def test_broken(read, content, line, what):
    """A broken file is refused with the file, the line at fault, what is wrong and a way out."""
    with pytest.raises(DataError) as caught:
        read(content)
    assert caught.value.line == line
    assert what in caught.value.what
    assert "xx_toy-ud-test.conllu" in str(caught.value)
    assert caught.value.mend.endswith((".", "?"))


ODD = {
    "CR LF": (GOOD.replace("\n", "\r\n"), [("w", "w")]),
    "a byte order mark": ("\ufeff" + GOOD, [("w", "w")]),
    "no blank line at the end": (GOOD[:-1], [("w", "w")]),
    "no line end at the end": (GOOD[:-2], [("w", "w")]),
    "many blank lines": (f"\n\n{GOOD}\n\n{GOOD}\n\n", [("w", "w"), ("w", "w")]),
    "blank lines of spaces": (f"{GOOD[:-1]}   \n{GOOD}", [("w", "w"), ("w", "w")]),
    "a comment inside": (f"{ONE}\n# note\n{TWO}\n\n", [("w", "w")]),
    "a tab in a comment": (f"# text = a\tb\n{ONE}\n\n", [("w",)]),
    "a bare comment sign": (f"#\n# \n{ONE}\n\n", [("w",)]),
    "a space in a word": (f"{row(1, form='10 000')}\n\n", [("10 000",)]),
    "two spaces in a word": (f"{row(1, form='10  000')}\n\n", [("10  000",)]),
    "five spaces in a word": (f"{row(1, form='a     b')}\n\n", [("a     b",)]),
    "a no-break space": (f"{row(1, form=chr(0xA0))}\n\n", [("\u00a0",)]),
    "a line separator": (f"{row(1, form='a' + chr(0x2028) + 'b')}\n\n", [("a\u2028b",)]),
    "an underscore": (f"{row(1, form='_')}\n\n", [("_",)]),
    "a number sign": (f"{row(1, form='#')}\n\n", [("#",)]),
    "a quotation mark": (f"{row(1, form=chr(34))}\n\n", [('"',)]),
    "a zero-width space": (f"{row(1, form=chr(0x200B))}\n\n", [("\u200b",)]),
    "a range": (f"{row('1-2', 'du', head='_')}\n{ONE}\n{TWO}\n\n", [("w", "w")]),
    "a range of one word": (f"{row('1-1', 'x', head='_')}\n{ONE}\n\n", [("w",)]),
    "two ranges": (
        f"{row('1-2')}\n{ONE}\n{TWO}\n{row('3-4')}\n{row(3, head=1)}\n{row(4, head=1)}\n\n",
        [("w",) * 4],
    ),
    "empty nodes": (f"{row('0.1')}\n{row('0.2')}\n{ONE}\n{row('1.1')}\n{TWO}\n\n", [("w", "w")]),
    "two roots": (f"{ONE}\n{row(2)}\n\n", [("w", "w")]),
    "a cycle": (f"{row(1, head=2)}\n{row(2, head=1)}\n\n", [("w", "w")]),
    "a tag of version 1": (f"{row(1, upos='CONJ')}\n\n", [("w",)]),
    "standard columns named": (
        f"# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n{ONE}\n\n",
        [("w",)],
    ),
}


@pytest.mark.parametrize(("content", "words"), ODD.values(), ids=ODD)
def test_odd_but_legal(read, content, words):
    """What real files hold and the format allows is read as it stands."""
    assert [sentence.words for sentence in read(content)] == words


def test_all_fields(read):
    """Every field of a sentence comes from its own column or comment."""
    content = (
        "# newdoc id = d\n# sent_id = n01\n# text = Du bist\tda = hier\n"
        "# orig_file_sentence = n#1\n"
        "1\tDu\tich\tPRON\tP\tCase=Nom\t3\tnsubj:pass\t3:x\tA=B\n"
        "2\tbist\t_\tAUX\t_\t_\t3\tcop\t_\t_\n3\tda\t_\tADV\t_\t_\t0\troot\t_\t_\n\n"
    )
    assert read(content) == (
        Sentence(
            sent_id="n01",
            text="Du bist\tda = hier",
            words=("Du", "bist", "da"),
            upos=("PRON", "AUX", "ADV"),
            heads=(3, 3, 0),
            deprels=("nsubj:pass", "cop", "root"),
            line=5,
            orig_id="n#1",
        ),
    )


def test_comments_without_equals_sign(read):
    """Ids that are written as in UD version 1, after a space, are read too."""
    (sentence,) = read(f"# sent_id s-p1\n# orig_file_sentence test001#1\n{ONE}\n\n")
    assert (sentence.sent_id, sentence.orig_id) == ("s-p1", "test001#1")


def test_no_comments(read):
    """Without comments the id is empty and the text is the words joined by spaces."""
    (sentence,) = read(f"{row(1, 'a')}\n{row(2, 'b c', head=1)}\n\n")
    assert (sentence.sent_id, sentence.text, sentence.orig_id) == ("", "a b c", "")


def test_no_heads(read):
    """A sentence in which no word has a head is read for tagging, without heads and labels."""
    (sentence,) = read(f"{row(1, head='_', deprel='_')}\n{row(2, head='_', deprel='_')}\n\n")
    assert (sentence.upos, sentence.heads, sentence.deprels) == (("NOUN", "NOUN"), (), ())


def test_lines_skip_comments_and_ranges(read):
    """`line` is that of the first word, after comments and a range."""
    first, second = read(f"{GOOD}# c\n{row('1-2')}\n{ONE}\n{TWO}\n\n")
    assert (first.line, second.line) == (2, 7)


def test_limit_reads_no_further(read):
    """A fault after the last wanted sentence is not met."""
    content = f"{GOOD}{GOOD}broken\n\n"
    assert len(read(content, limit=2)) == 2
    with pytest.raises(DataError, match=":9: 1 column"):
        read(content, limit=3)


def test_limit_beyond_the_end(read):
    """A limit larger than the file gives the whole file."""
    assert len(read(GOOD, limit=7)) == 1


def test_limit_below_one(read):
    """A limit that leaves nothing is a mistake of the caller."""
    with pytest.raises(ValueError, match="limit = 0"):
        read(GOOD, limit=0)


def test_no_such_file(tmp_path):
    """A path without a file is named in the error."""
    with pytest.raises(DataError, match=r"nowhere\.conllu: cannot be read \(No such file"):
        read_conllu(str(tmp_path / "nowhere.conllu"))


def test_folder(tmp_path):
    """A folder is refused as a file that cannot be read."""
    with pytest.raises(DataError, match="cannot be read"):
        read_conllu(str(tmp_path))


TREES = [
    ((2, 0, 2), None),
    ((0,), None),
    ((), "3 words have 0 heads"),
    ((0, 0, 1), "words 1, 2 are all roots"),
    ((2, 3, 2), "words 2 -> 3 -> 2 form a cycle"),
    ((1, 0, 2), "words 1 -> 1 form a cycle"),
    ((2, 3, 1), "words 1 -> 2 -> 3 -> 1 form a cycle"),
]


@pytest.mark.parametrize(("heads", "fault"), TREES)
def test_check_tree(heads, fault):
    """A tree has one root, reached from every word; otherwise the words at fault are named."""
    words = ("w",) * (len(heads) or 3)
    assert check_tree(Sentence(sent_id="", text="", words=words, heads=heads)) == fault


@given(st.integers(1, 7).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_check_tree_by_walking(heads):
    """A sentence passes if and only if it has one root and n steps up end there from every word."""

    def end(word):
        for _ in heads:
            word = heads[word - 1] if word else 0
        return word

    is_tree = heads.count(0) == 1 and all(end(word) == 0 for word in range(1, len(heads) + 1))
    sentence = Sentence(sent_id="", text="", words=("w",) * len(heads), heads=tuple(heads))
    assert (check_tree(sentence) is None) == is_tree


# Words may hold anything but what ends a column or a line; zero bytes are refused (see BROKEN).
forms = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1)
labels = st.from_regex(r"[a-z]+(:[a-z]+)?", fullmatch=True)
comments = st.from_regex(r"[A-Za-z0-9_./#-]+", fullmatch=True)


@st.composite
def sentences(draw):
    """A sentence as its fields, of one to six words."""
    n = draw(st.integers(1, 6))

    def each(strategy):
        return tuple(draw(st.lists(strategy, min_size=n, max_size=n)))

    return Sentence(
        sent_id=draw(comments),
        text=draw(comments),
        words=each(forms),
        upos=each(st.sampled_from(sorted(UPOS_TAGS))),
        heads=each(st.integers(0, n)),
        deprels=each(labels),
        orig_id=draw(comments),
    )


def written(sentence, end="\n"):
    """A sentence in CoNLL-U, written without the reader's code."""
    rows = [
        f"# sent_id = {sentence.sent_id}",
        f"# text = {sentence.text}",
        f"# orig_file_sentence = {sentence.orig_id}",
    ]
    columns = zip(sentence.words, sentence.upos, sentence.heads, sentence.deprels, strict=True)
    rows += [row(i, *values) for i, values in enumerate(columns, 1)]
    return end.join([*rows, "", ""])


def content_of(sentence):
    """All of a sentence but the place where it stood."""
    return [getattr(sentence, name) for name in sentence.__slots__ if name != "line"]


@given(st.lists(sentences(), min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_round_trip(tmp_path_factory, original, end):
    """What is written is read back, field by field, with the lines where it stands."""
    path = tmp_path_factory.mktemp("trip") / "a.conllu"
    path.write_bytes("".join(written(s, end) for s in original).encode())
    found = read_conllu(str(path))
    assert [content_of(s) for s in found] == [content_of(s) for s in original]
    assert found[0].line == 4
    for one, next_one in pairwise(found):
        assert next_one.line == one.line + len(one.words) + 4


edits = st.tuples(
    st.sampled_from(["delete", "insert", "replace", "cut", "double"]),
    st.integers(0, 10_000),
    st.sampled_from([b"\t", b"\n", b"\n\n", b"\r", b"\0", b"#", b"-", b".", b"_", b"1", b"9", b" ",
                     b"  ", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"= "]),
)  # fmt: skip


def edited(data, kind, at, piece):
    """Bytes after one edit."""
    at %= len(data) + 1
    head, tail = data[:at], data[at:]
    return {
        "delete": head + tail[1:],
        "insert": head + piece + tail,
        "replace": head + piece + tail[1:],
        "cut": head,
        "double": data + tail,
    }[kind]


@given(st.lists(sentences(), min_size=1, max_size=3), st.lists(edits, min_size=1, max_size=4))
@example([], [("insert", 0, b"1\t\xc2\x85")])
def test_mutated_files(tmp_path_factory, original, changes):
    """A damaged file gives a DataError with a line that it has, or words with whole annotation."""
    data = "".join(written(s) for s in original).encode()
    for kind, at, piece in changes:
        data = edited(data, kind, at, piece)
    path = Path(tmp_path_factory.mktemp("mutated"), "a.conllu")
    path.write_bytes(data)
    try:
        found = read_conllu(str(path))
    except DataError as error:
        found, line = (), error.line
    else:
        line = None
    assert line is None or 1 <= line <= data.count(b"\n") + 1
    for sentence in found:
        n = len(sentence.words)
        assert n >= 1
        assert all(sentence.words)
        assert len(sentence.upos) == n
        assert len(sentence.heads) in {0, n}
        assert all(0 <= head <= n for head in sentence.heads)
