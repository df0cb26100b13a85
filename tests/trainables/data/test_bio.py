import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.data import bio
from trainables.data.sentence import DataError, Sentence

READERS = {
    "wikiann": bio.read_wikiann,
    "panx": bio.read_panx,
    "masakhaner": bio.read_masakhaner,
    "conll": bio.read_conll,
    "uner": bio.read_uner,
    "udpos": bio.read_udpos,
}


@pytest.fixture
def read(tmp_path):
    """Write a text or bytes to a file and read it in a layout."""

    def from_text(layout, content, limit=None):
        path = tmp_path / "some.tsv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return READERS[layout](str(path), limit)

    return from_text


UNER = (
    "# sent_id = d-1\n# text = In Rom .\n1\tIn\tO\t-\t-\n2\tRom\tB-LOC\t-\tann\n3\t.\tO\t-\t-\n\n"
)

LEGAL = {
    "wikiann": ("wikiann", "en:New\tB-LOC\nen:York\tI-LOC\n\nen:a\tO\n\n", ["B-LOC I-LOC", "O"]),
    "wikiann, colons in words": ("wikiann", "en::\tO\nen:a:b\tO\n", ["O O"]),
    "panx": ("panx", "New\tB-LOC\nYork\tI-LOC\n\na\tO\n", ["B-LOC I-LOC", "O"]),
    "panx, CR LF": ("panx", "New\tB-LOC\r\nYork\tI-LOC\r\n\r\na\tO\r\n", ["B-LOC I-LOC", "O"]),
    "panx, byte order mark": ("panx", "\ufeffNew\tB-LOC\n", ["B-LOC"]),
    "panx, no line end": ("panx", "New\tB-LOC", ["B-LOC"]),
    "panx, blank lines": ("panx", "\n\na\tO\n\n\n\nb\tO\n\n\n", ["O", "O"]),
    "panx, a number sign is a word": ("panx", "#\tO\n1\tO\n", ["O O"]),
    "panx, a quotation mark is a word": ("panx", '"\tO\n"\tO\n', ["O O"]),
    "panx, a broken span": ("panx", "a\tO\nb\tI-PER\nc\tI-LOC\n", ["O I-PER I-LOC"]),
    "panx, without tags": ("panx", "New\nYork\n\na\n", ["", ""]),
    "masakhaner": ("masakhaner", "Ab B-DATE\n# I-DATE\n\na O\n", ["B-DATE I-DATE", "O"]),
    "conll": (
        "conll",
        "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n. . O O\n",
        ["I-ORG O", "O"],
    ),
    "conll, tabs": ("conll", "EU\tNNP\tB-ORG\n", ["B-ORG"]),
    "uner": ("uner", UNER, ["O B-LOC O"]),
    "uner, a number sign is a word": ("uner", "1\t#\tO\t-\t-\n\n", ["O"]),
}


@pytest.mark.parametrize(("layout", "content", "tags"), LEGAL.values(), ids=LEGAL)
def test_legal(read, layout, content, tags):
    """What real files of a layout hold is read with its tags as they stand."""
    assert [" ".join(sentence.tags) for sentence in read(layout, content)] == tags


def test_wikiann_fields(read):
    """The language is taken off a word and the rest is kept, colons included."""
    assert read("wikiann", "\nde:a:b\tB-LOC\nde::\tO\n") == (
        Sentence(sent_id="", text="a:b :", words=("a:b", ":"), tags=("B-LOC", "O"), line=2),
    )


def test_uner_fields(read):
    """Id and text come from the comments, words and tags from their columns."""
    assert read("uner", UNER) == (
        Sentence(
            sent_id="d-1",
            text="In Rom .",
            words=("In", "Rom", "."),
            tags=("O", "B-LOC", "O"),
            line=3,
        ),
    )


def test_udpos_fields(read):
    """Part-of-speech files give UPOS and no entity tags."""
    (sentence,) = read("udpos", "a\tDET\ncat\tNOUN\n\n")
    assert (sentence.words, sentence.upos, sentence.tags) == (("a", "cat"), ("DET", "NOUN"), ())


BROKEN = {
    "empty": ("panx", "", None, "holds no sentence"),
    "only blank lines": ("wikiann", "\n\n", None, "holds no sentence"),
    "only -DOCSTART-": ("conll", "-DOCSTART- -X- O\n\n", None, "holds no sentence"),
    "three columns": ("panx", "a\tO\nb\tO\tO\n", 2, "3 columns"),
    "spaces in panx": ("panx", "a\tO\nb O\n", 2, "lines with and without tag"),
    "masakhaner read as panx": ("panx", "a O\nb O\n", 1, "'a O' is not one token"),
    "prose read as panx": ("panx", "This is a sentence .\n", 1, "is not one token"),
    "panx read as masakhaner": ("masakhaner", "a\tO\n", 1, "1 column"),
    "panx read as wikiann": ("wikiann", "a\tO\n", 1, "'a' does not begin with 'lang:'"),
    "panx read as uner": ("uner", "a\tO\n", 1, "2 columns"),
    "conllu read as uner": ("uner", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n", 1, "10 columns"),
    "wikiann with one column": ("wikiann", "en:a\tO\nen:b\n", 2, "1 column"),
    "another language": ("wikiann", "en:a\tO\n\nde:b\tO\n", 3, "'de:b' does not begin with 'en:'"),
    "a word without characters": ("wikiann", "en:a\tO\nen:\tO\n", 2, "no characters after its"),
    "an empty word": ("panx", "a\tO\n\tO\n", 2, "one of them empty"),
    "an empty tag": ("panx", "a\tO\nb\t\n", 2, "one of them empty"),
    "two spaces": ("masakhaner", "a  O\n", 1, "3 columns, one of them empty"),
    "a tag missing": ("masakhaner", "a O\nb\n", 2, "1 column"),
    "a first tag missing": ("panx", "a\nb\tO\n", 2, "lines with and without tag"),
    "IOBES": ("panx", "a\tO\nb\tS-PER\n", 2, "tag 'S-PER' is neither O nor B-"),
    "a bare B": ("panx", "a\tB-\n", 1, "tag 'B-'"),
    "small letters": ("panx", "a\to\n", 1, "tag 'o'"),
    "a type without prefix": ("conll", "a NNP PER\n", 1, "tag 'PER'"),
    "udpos read as panx": ("panx", "a\tNOUN\n", 1, "tag 'NOUN'"),
    "panx read as udpos": ("udpos", "a\tNOUN\nb\tO\n", 2, "'O' is no universal"),
    "six columns": ("conll", "a b c d e O\n", 1, "6 columns"),
    "an index left out": ("uner", "1\ta\tO\t-\t-\n3\tb\tO\t-\t-\n", 2, "index '3' where 2"),
    "a blank line left out": ("uner", "1\ta\tO\t-\t-\n1\tb\tO\t-\t-\n", 2, "index '1' where 2"),
    "a range": ("uner", "1-2\ta\tO\t-\t-\n", 1, "index '1-2' where 1"),
    "comments alone": ("uner", f"{UNER}# sent_id = 2\n", 7, "without words"),
    "cut in a line": ("uner", UNER[:-6], 5, "3 columns"),
    "Latin-1": ("panx", "a\tO\né\tO\n".encode("latin-1"), 2, "not UTF-8"),
    "a zero byte": ("panx", b"a\tO\n\0\0\0\0", 2, "a zero byte"),
    "old Macintosh line ends": ("panx", "a\tO\rb\tO\r", 1, "a carriage return"),
}


@pytest.mark.parametrize(("layout", "content", "line", "what"), BROKEN.values(), ids=BROKEN)
def test_broken(read, layout, content, line, what):
    """A broken file, or one of another layout, is refused with its line and a way out."""
    with pytest.raises(DataError) as caught:
        read(layout, content)
    assert caught.value.line == line
    assert what in caught.value.what
    assert caught.value.mend.endswith((".", "?"))


def test_limit(read):
    """A limit reads so many sentences and meets no fault behind them; zero is refused."""
    assert len(read("panx", "a\tO\n\nb\tO\n\nbroken line\t\t\n", limit=2)) == 2
    with pytest.raises(ValueError, match="limit = 0"):
        read("panx", "a\tO\n", limit=0)


def test_no_such_file(tmp_path):
    """A path without a file is named."""
    with pytest.raises(DataError, match=r"none\.tsv: cannot be read"):
        bio.read_panx(str(tmp_path / "none.tsv"))


@pytest.mark.parametrize(
    ("tags", "fault"),
    [
        ("O B-PER I-PER O", None),
        ("B-PER B-PER I-PER", None),
        ("B-LOC I-LOC I-LOC B-LOC", None),
        ("", None),
        ("I-PER O", "word 1 ('w') has I-PER after O"),
        ("O O I-PER", "word 3 ('w') has I-PER after O"),
        ("B-PER I-LOC", "word 2 ('w') has I-LOC after B-PER"),
        ("B-PER I-PER I-LOC", "word 3 ('w') has I-LOC after I-PER"),
    ],
)
def test_check_bio(tags, fault):
    """A span starts with B- and goes on with its own type; the first breach is named."""
    parts = tuple(tags.split())
    sentence = Sentence(sent_id="", text="", words=("w",) * len(parts), tags=parts)
    assert bio.check_bio(sentence) == fault


tokens = st.text(
    st.characters(exclude_characters="\t\n\r\0 ", exclude_categories=["Cs", "Zs"]), min_size=1
)
rows = st.lists(
    st.tuples(tokens, st.sampled_from(["O", "B-PER", "I-PER", "B-LOC"])), min_size=1, max_size=5
)
LINES = {
    "wikiann": "xx:{word}\t{tag}\n",
    "panx": "{word}\t{tag}\n",
    "masakhaner": "{word} {tag}\n",
    "uner": "{i}\t{word}\t{tag}\t-\t-\n",
}


@given(st.sampled_from(sorted(LINES)), st.lists(rows, min_size=1, max_size=4))
def test_round_trip(tmp_path_factory, layout, original):
    """Whatever words are written in a layout are read back, with their tags."""
    line = LINES[layout]
    blocks = [
        "".join(line.format(i=i, word=word, tag=tag) for i, (word, tag) in enumerate(block, 1))
        for block in original
    ]
    path = tmp_path_factory.mktemp("trip") / "a"
    # A byte order mark at the very start is no part of the first word.
    path.write_text("\n" + "\n".join(blocks), encoding="utf-8")
    found = READERS[layout](str(path))
    assert [list(zip(s.words, s.tags, strict=True)) for s in found] == original


@given(
    st.sampled_from(sorted(READERS)),
    st.lists(
        st.sampled_from(["a", "\t", "\n", " ", "O", "B-X", "I-", "1", "#", "x:", "\r", "\0"])
    ).map("".join),
)
def test_any_text(tmp_path_factory, layout, content):
    """Any text is either refused with a line that it has or read with all tags or none."""
    path = tmp_path_factory.mktemp("any") / "a"
    path.write_bytes(content.encode())
    try:
        found = READERS[layout](str(path))
    except DataError as error:
        found, line = (), error.line
    else:
        line = None
    assert line is None or 1 <= line <= content.count("\n") + 1
    for sentence in found:
        assert len(sentence.words) >= 1
        assert len(sentence.tags) + len(sentence.upos) in {0, len(sentence.words)}
