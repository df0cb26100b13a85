import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.data import tsv
from trainables.data.example import Example
from trainables.data.sentence import DataError

READERS = {
    "xnli": tsv.read_xnli,
    "kornli": tsv.read_kornli,
    "americasnli": tsv.read_americasnli,
    "pawsx": tsv.read_pawsx,
    "pawsx-final": tsv.read_pawsx_final,
    "sib200": tsv.read_sib200,
    "masakhanews": tsv.read_masakhanews,
}


@pytest.fixture
def read(tmp_path):
    """Write a text or bytes to a file and read it in a layout."""

    def from_text(layout, content, limit=None):
        path = tmp_path / "some.tsv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return READERS[layout](str(path), limit)

    return from_text


KOR = "sentence1\tsentence2\tgold_label\n"
FINAL = "id\tsentence1\tsentence2\tlabel\n"
SIB = "index_id\tcategory\ttext\n"
NEWS = "category\theadline\ttext\turl\n"

LEGAL = {
    "xnli": (
        "xnli",
        "He left.\tHe went.\tentailment\nA\tB\tneutral\n",
        [
            Example(text="He left.", pair="He went.", label="entailment", line=1),
            Example(text="A", pair="B", label="neutral", line=2),
        ],
    ),
    "xnli, CR LF": (
        "xnli",
        "A\tB\tneutral\r\n",
        [Example(text="A", pair="B", label="neutral", line=1)],
    ),
    "xnli, byte order mark": (
        "xnli",
        "\ufeffA\tB\tneutral",
        [Example(text="A", pair="B", label="neutral", line=1)],
    ),
    "xnli, label of MultiNLI's translations": (
        "xnli",
        "A\tB\tcontradictory\n",
        [Example(text="A", pair="B", label="contradiction", line=1)],
    ),
    "xnli, without labels": ("xnli", "A\tB\n", [Example(text="A", pair="B", line=1)]),
    "xnli, blank lines": (
        "xnli",
        "\nA\tB\tneutral\n\n",
        [Example(text="A", pair="B", label="neutral", line=2)],
    ),
    "kornli, marks as they stand": (
        "kornli",
        f'{KOR}"A\tB""\tneutral\nC\t"D"\tneutral\n',
        [
            Example(text='"A', pair='B""', label="neutral", line=2),
            Example(text="C", pair='"D"', label="neutral", line=3),
        ],
    ),
    "americasnli": (
        "americasnli",
        "id\tlanguage\tpremise\thypothesis\tlabel\n12\tgn\tA\tB\tneutral\n",
        [Example(text="A", pair="B", label="neutral", example_id="12", language="gn", line=2)],
    ),
    "pawsx, quoted": (
        "pawsx",
        '"""A"" b"\tc "d" e\t1\n',
        [Example(text='"A" b', pair='c "d" e', label="1", line=1)],
    ),
    "pawsx, without labels": ("pawsx", 'A\t"B ""c"""\n', [Example(text="A", pair='B "c"', line=1)]),
    "pawsx, a tab inside quotes": (
        "pawsx",
        '"a\tb"\tc\t0\n',
        [Example(text="a\tb", pair="c", label="0", line=1)],
    ),
    "pawsx-final": (
        "pawsx-final",
        f"{FINAL}7\tA\tB\t0\n",
        [Example(text="A", pair="B", label="0", example_id="7", line=2)],
    ),
    "sib200": (
        "sib200",
        f'{SIB}3\tsports\t"He said ""no""."\n',
        [Example(text='He said "no".', label="sports", example_id="3", line=2)],
    ),
    "masakhanews, over two lines": (
        "masakhanews",
        f'{NEWS}health\tH\t"one\n\ntwo"\thttp://x\nsports\tI\tthree\thttp://y\n',
        [
            Example(text="H\none\n\ntwo", label="health", line=2),
            Example(text="I\nthree", label="sports", line=5),
        ],
    ),
}


@pytest.mark.parametrize(("layout", "content", "examples"), LEGAL.values(), ids=LEGAL)
def test_legal(read, layout, content, examples):
    """Each layout is read with its own header and quoting."""
    assert list(read(layout, content)) == examples


BROKEN = {
    "empty": ("xnli", "", None, "holds no example"),
    "only a header": ("kornli", KOR, None, "holds no example"),
    "empty where a header belongs": ("kornli", "", 1, "the header is missing"),
    "two columns in a labelled file": ("xnli", "A\tB\tneutral\nA\tB\n", 2, "2 columns instead of"),
    "three columns in an unlabelled one": ("xnli", "A\tB\nA\tB\tneutral\n", 2, "3 columns"),
    "one column": ("xnli", "A\n", 1, "1 column instead of 3"),
    "a tab inside a text": ("xnli", "A\tA\tB\tneutral\n", 1, "4 columns instead of 3"),
    "another language's label": ("xnli", "A\tB\tneutre\n", 1, "label 'neutre' is unknown"),
    "kornli read as xnli": ("xnli", f"{KOR}A\tB\tneutral\n", 1, "label 'gold_label' is unknown"),
    "xnli read as kornli": ("kornli", "A\tB\tneutral\n", 1, "the header is A TAB B TAB neutral"),
    "pawsx read as xnli": ("xnli", "A\tB\t1\n", 1, "label '1' is unknown"),
    "xnli read as pawsx": ("pawsx", "A\tB\tneutral\n", 1, "label 'neutral' is unknown"),
    "pawsx-final read as pawsx": ("pawsx", f"{FINAL}1\tA\tB\t0\n", 1, "4 columns instead of 3"),
    "a header in another order": ("sib200", "index_id\ttext\tcategory\n", 1, "the header is index"),
    "an empty premise": ("xnli", "A\tB\tneutral\n\tB\tneutral\n", 2, "column premise is empty"),
    "an empty hypothesis": ("kornli", f"{KOR}A\t \tneutral\n", 2, "column sentence2 is empty"),
    "an empty label": ("xnli", "A\tB\t\n", 1, "column label is empty"),
    "an empty category": ("sib200", f"{SIB}1\t\tA\n", 2, "column category is empty"),
    "an empty headline": ("masakhanews", f"{NEWS}a\t\tb\tc\n", 2, "column headline is empty"),
    "a mark that is not closed": ("pawsx", 'A\tB\t1\n"A\tB\t1\nA\tB\t1\n', 2, "quotation mark"),
    "a mark closed too early": ("pawsx", 'A\tB\t1\n"A" b\tB\t1\n', 2, "quotation mark"),
    "a mark closed lines later": ("sib200", f'{SIB}1\ta\t"x\n2\ta\t"y"\n', 2, "quotation mark"),
    "cut in the middle": ("sib200", f"{SIB}1\ta\tx\n2\ta", 3, "2 columns instead of 3"),
    "Latin-1": ("xnli", "A\tB\tneutral\né\tB\tneutral\n".encode("latin-1"), 2, "not UTF-8"),
    "a zero byte": ("pawsx", "A\tB\t1\nA\0\tB\t1\n", 2, "a zero byte"),
}


@pytest.mark.parametrize(("layout", "content", "line", "what"), BROKEN.values(), ids=BROKEN)
def test_broken(read, layout, content, line, what):
    """A broken table, or one of another layout, is refused with its line and a way out."""
    with pytest.raises(DataError) as caught:
        read(layout, content)
    assert caught.value.line == line
    assert what in caught.value.what
    assert caught.value.mend.endswith((".", "?"))


def test_limit(read):
    """A limit reads so many examples and meets no fault behind them; zero is refused."""
    assert len(read("kornli", f"{KOR}A\tB\tneutral\nbroken\n", limit=1)) == 1
    with pytest.raises(ValueError, match="limit = 0"):
        read("kornli", KOR, limit=0)


def test_long_document(read):
    """A document longer than what the csv module takes by itself is read whole."""
    text = "word " * 40_000
    (example,) = read("sib200", f"{SIB}1\ta\t{text}\n")
    assert example.text == text


@pytest.fixture
def write_wili(tmp_path):
    """Write texts and labels; give the path of the texts."""

    def write(texts, labels):
        (tmp_path / "x_test.txt").write_text(texts, encoding="utf-8")
        (tmp_path / "y_test.txt").write_text(labels, encoding="utf-8")
        return str(tmp_path / "x_test.txt")

    return write


def test_wili(write_wili):
    """Line k of the labels is the language of line k of the texts, marks as they stand."""
    path = write_wili('"a\nb""\n', "deu\nell\n")
    assert tsv.read_wili(path) == (
        Example(text='"a', label="deu", language="deu", line=1),
        Example(text='b""', label="ell", language="ell", line=2),
    )
    assert len(tsv.read_wili(path, 1)) == 1


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("a\nb\n", "deu\n", r"y_test\.txt: no line 2, but x_test\.txt has one"),
        ("a\n", "deu\nell\n", r"x_test\.txt: no line 2, but y_test\.txt has one"),
        ("a\n\nb\n", "deu\nell\nfas\n", r"x_test\.txt:2: an empty line"),
        ("a\nb\n", "deu\n \n", r"y_test\.txt:2: an empty line"),
        ("", "", r"x_test\.txt: the file holds no example"),
    ],
)
def test_wili_that_does_not_fit(write_wili, texts, labels, message):
    """Texts and labels that do not pair off are refused with the file at fault."""
    with pytest.raises(DataError, match=message):
        tsv.read_wili(write_wili(texts, labels))


def test_wili_without_labels(tmp_path):
    """A file of texts needs its name and the file of labels beside it."""
    (tmp_path / "x_test.txt").write_text("a\n")
    with pytest.raises(DataError, match=r"y_test\.txt: cannot be read"):
        tsv.read_wili(str(tmp_path / "x_test.txt"))
    with pytest.raises(DataError, match="not a file of texts"):
        tsv.read_wili(str(tmp_path / "test.txt"))


texts = st.text(
    st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), min_size=1
).filter(str.strip)


@given(st.lists(st.tuples(texts, texts, st.sampled_from("01")), min_size=1, max_size=5))
def test_quoted_round_trip(tmp_path_factory, rows):
    """What the csv module writes, with tabs, marks and line ends in texts, is read back."""
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows(rows)
    path = tmp_path_factory.mktemp("trip") / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + out.getvalue().encode())
    found = tsv.read_pawsx(str(path))
    assert [(e.text, e.pair, e.label) for e in found] == rows


plain = texts.filter(lambda text: not set(text) & set("\t\n"))


@given(st.lists(st.tuples(plain, plain, st.sampled_from(tsv.NLI_LABELS)), min_size=1, max_size=5))
def test_plain_round_trip(tmp_path_factory, rows):
    """Texts without quoting are read back character by character, marks included."""
    path = tmp_path_factory.mktemp("trip") / "a.tsv"
    path.write_bytes((KOR + "".join("\t".join(row) + "\n" for row in rows)).encode())
    found = tsv.read_kornli(str(path))
    assert [(e.text, e.pair, e.label) for e in found] == rows


@given(
    st.sampled_from(sorted(READERS)),
    st.lists(st.sampled_from(["a", "\t", "\n", '"', '""', " ", "1", "neutral", "\r", "\0"])).map(
        "".join
    ),
    st.booleans(),
)
def test_any_text(tmp_path_factory, layout, content, with_header):
    """Any text is either refused with a line that it has or read without an empty text."""
    header = {"kornli": KOR, "pawsx-final": FINAL, "sib200": SIB, "masakhanews": NEWS}
    whole = header.get(layout, "") * with_header + content
    path = tmp_path_factory.mktemp("any") / "a"
    path.write_bytes(whole.encode())
    try:
        found = READERS[layout](str(path))
    except DataError as error:
        found, line = (), error.line
    else:
        line = None
    assert line is None or 1 <= line <= whole.count("\n") + 1
    assert all(example.text.strip() for example in found)
