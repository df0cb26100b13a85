"""Names of texts, and names of parts of files."""

import pytest

from trainables.data.datasets import MANY
from trainables.data.reading import read
from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref, language_of, part_of


@pytest.fixture
def root(tmp_path):
    """One file of each data set that names its files in a way of its own."""
    for path, text in {
        "MLDoc/english.train.1000": "CCAT\tOne. Two.\n",
        "MLDoc/japanese.dev": "ECAT\t一。二。\n",
        "wili-2018/x_train.txt": "a\nb\nc\nd\n",
        "wili-2018/y_train.txt": "eng\ndeu\neng\ndeu\n",
        "xnli/dev-en.tsv": "".join(f"p{i}\th{i}\tneutral\n" for i in range(5)),
    }.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("code", "split", "language", "name"),
    [
        ("mldoc-en", "train", "en", "english.train.1000"),
        ("mldoc-ja", "dev", "ja", "japanese.dev"),
        ("wili-mul", "train", MANY, "x_train.txt"),
        ("wili:wili-2018/x_train.txt", "dev", MANY, "x_train.txt"),
    ],
)
def test_data_sets_with_names_of_their_own(root, code, split, language, name):
    """MLDoc spells languages out; WiLI has no language in its names."""
    ref = data_ref(root, code, split)
    assert (ref.layout, ref.language) == (code[: len(ref.layout)], language)
    assert ref.location.endswith(f"/{name}")


@pytest.mark.parametrize(
    ("code", "limit", "expected"),
    [
        ("xnli-en[:2]", None, [0, 1]),
        ("xnli-en[2:]", None, [2, 3, 4]),
        ("xnli-en[1:3]", None, [1, 2]),
        ("xnli-en[1:3]", 1, [1]),
        ("xnli:xnli/dev-en.tsv[3:9]", 9, [3, 4]),
        ("xnli-en[:]", 2, [0, 1]),
    ],
)
def test_a_part_of_a_file_is_named_by_its_bounds(root, code, limit, expected):
    """Parts that share no bound share no example; a limit counts from the part's beginning."""
    ref = data_ref(root, code, "dev", limit)
    assert [example.text for example in read(ref)] == [f"p{i}" for i in expected]
    assert (ref.code, ref.language) == (code, "en")


def test_parts_have_keys_of_their_own(root):
    """Whole file, part and other part are never taken for each other."""
    codes = ["xnli-en", "xnli-en[:2]", "xnli-en[2:]", "xnli-en[1:3]", "xnli-en[:3]"]
    assert len({data_ref(root, code, "dev").key for code in codes}) == len(codes)


def test_a_part_beyond_the_end_is_refused(root):
    """A part that holds nothing is an error of the study, told with the file."""
    with pytest.raises(DataError, match=r"dev-en\.tsv: there is nothing after the first 5"):
        read(data_ref(root, "xnli-en[5:]", "dev"))
    with pytest.raises(DataError, match="this part of a file is empty"):
        part_of("xnli-en[4:4]")


def test_the_language_of_a_part_is_that_of_its_file():
    """Bounds are no part of a name."""
    assert language_of("en_ewt[:10]") == "en"
    assert language_of("wili-mul[5:]") == MANY
