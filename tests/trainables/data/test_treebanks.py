import hashlib
import os

import pytest

from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref, fingerprint, language_of
from trainables.spec import DataRef


@pytest.fixture
def root(tmp_path):
    """A data folder in the layouts in which UD is published."""

    def put(path, content):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    put("ud/UD_English-EWT/en_ewt-ud-train.conllu", "ewt train")
    put("ud/UD_English-EWT/en_ewt-ud-dev.conllu", "ewt dev")
    put("ud/UD_English-PUD/en_pud-ud-test.conllu", "en pud")
    put("ud/UD_Swiss_German-UZH/gsw_uzh-ud-test.conllu", "uzh")
    put("ud-1.4/UD_French/fr-ud-test.conllu", "french 1.4")
    put("ud-treebanks-v2.4/UD_Polish-PUD/pl_pud-ud-test.conllu", "polish 2.4")
    put("ud-treebanks-v2.10/UD_Polish-PUD/pl_pud-ud-test.conllu", "polish 2.10")
    put("tweebank/en-ud-tweet-dev.conllu", "tweets")
    put(".hidden/de_pud-ud-test.conllu", "not for us")
    put("sv_pud-ud-test.conllu", "plain")
    return tmp_path


def test_data_ref(root):
    """A code and a split become the file below the folder, pinned by its content."""
    file = root / "ud/UD_English-EWT/en_ewt-ud-train.conllu"
    assert data_ref(root, "en_ewt", "train", 2000) == DataRef(
        code="en_ewt",
        language="en",
        split="train",
        location=str(file),
        layout="conllu",
        fingerprint=f"sha256:{hashlib.sha256(b'ewt train').hexdigest()}",
        limit=2000,
    )


@pytest.mark.parametrize(
    ("code", "split", "content", "language"),
    [
        ("sv_pud", "test", b"plain", "sv"),
        ("gsw_uzh", "test", b"uzh", "gsw"),
        ("fr", "test", b"french 1.4", "fr"),
        ("fr@1.4", "test", b"french 1.4", "fr"),
        ("pl_pud@2.4", "test", b"polish 2.4", "pl"),
        ("pl_pud@2.10", "test", b"polish 2.10", "pl"),
        ("tweebank/en-ud-tweet-{split}.conllu", "dev", b"tweets", "en"),
        ("tweebank/en-ud-tweet-dev.conllu", "test", b"tweets", "en"),
        ("sv_pud-ud-test.conllu", "test", b"plain", "sv"),
    ],
)
def test_codes(root, code, split, content, language):
    """Every kind of code finds its file and tells its language."""
    ref = data_ref(str(root), code, split)
    assert ref.fingerprint == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert (ref.code, ref.language, ref.split) == (code, language, split)


@pytest.mark.parametrize(
    ("code", "split", "message"),
    [
        ("en_ewtt", "train", "no file en_ewtt-ud-train.conllu. Did you mean en_ewt"),
        ("en_gum", "test", "Did you mean en_pud"),
        ("en_pud", "train", "Of en_pud there is: test."),
        ("xx_yyy", "test", "There is en_pud, fr, gsw_uzh, pl_pud, sv_pud."),
        ("de_pud", "test", "no file de_pud-ud-test.conllu"),
        (
            "fr@2.4",
            "test",
            "no fr-ud-test.conllu in a folder of release 2.4. There is ud-1.4/UD_Fr",
        ),
        ("pl_pud@2.1", "test", "in a folder of release 2.1"),
        ("pl_pud@10", "test", "in a folder of release 10"),
        ("pl_pud", "test", "2 different files for 'pl_pud'"),
        ("UD_English-EWT", "test", "'UD_English-EWT' is no treebank code"),
        ("", "test", "'' is no treebank code"),
        ("en_ewt@", "test", "is no treebank code"),
        ("en_ewt", "validation", "unknown split 'validation'. Use train, dev, test."),
        ("ud/en_pud-ud-test.conllu", "test", "Did you mean ud/UD_English-PUD/en_pud-ud-test.con"),
        ("ud/en_pad-ud-test.conllu", "test", "Did you mean ud/UD_English-PUD/en_pud-ud-test.con"),
        ("zz/totally-else.conllu", "test", "There is nothing like it below the folder"),
    ],
)
def test_not_found(root, code, split, message):
    """A code without exactly one file is refused with the closest thing that there is."""
    with pytest.raises(DataError) as caught:
        data_ref(root, code, split)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "code",
    [
        "../x",
        "../outside.conllu",
        "ud/../../outside.conllu",
        "/etc/passwd",
        "..\\outside.conllu",
        "ud/\0.conllu",
        "{split}/../../outside.conllu",
    ],
)
def test_no_way_out(root, code):
    """A code from a study file never leads out of the data folder."""
    (root.parent / "outside.conllu").write_text("secret")
    with pytest.raises(DataError, match="leaves the data folder"):
        data_ref(root, code, "test")


def test_no_folder(tmp_path):
    """A data folder that is not there is named."""
    with pytest.raises(DataError, match="nowhere: no such data folder"):
        data_ref(tmp_path / "nowhere", "en_ewt", "train")


def test_empty_folder(tmp_path):
    """An empty data folder asks to fetch the treebanks."""
    with pytest.raises(DataError, match="fetch the treebanks first"):
        data_ref(tmp_path, "en_ewt", "train")


def test_copies_are_one(root):
    """Two files of one name and content are no ambiguity; the one nearest to the root is taken."""
    (root / "en_pud-ud-test.conllu").write_text("en pud")
    assert data_ref(root, "en_pud", "test").location == str(root / "en_pud-ud-test.conllu")


def test_release_of_the_root(root):
    """The data folder itself may be the folder of a release."""
    ref = data_ref(root / "ud-treebanks-v2.4", "pl_pud@2.4", "test")
    assert ref.fingerprint == fingerprint(ref.location)


def test_links(root):
    """Linked folders are followed, also one that leads back to the root."""
    (root / "here").symlink_to(root / "ud-1.4", target_is_directory=True)
    (root / "ud-1.4" / "loop").symlink_to(root, target_is_directory=True)
    assert data_ref(root, "fr@1.4", "test").language == "fr"


def test_relative_root(root, monkeypatch):
    """The location is absolute even where the root is not, so that a worker finds it."""
    monkeypatch.chdir(root)
    assert data_ref("ud", "en_pud", "test").location == str(
        root / "ud/UD_English-PUD/en_pud-ud-test.conllu"
    )


def test_fingerprint_follows_content(tmp_path):
    """A file that changes gets a new fingerprint, and its old one with its old content."""
    file = tmp_path / "a"
    file.write_text("one")
    first = fingerprint(file)
    file.write_text("other")
    second = fingerprint(file)
    file.write_text("one")
    assert first == f"sha256:{hashlib.sha256(b'one').hexdigest()}"
    assert (second, fingerprint(file)) == (f"sha256:{hashlib.sha256(b'other').hexdigest()}", first)


def test_fingerprint_is_remembered(tmp_path):
    """A file of the same path, size and time is hashed once."""
    file = tmp_path / "a"
    file.write_text("one")
    first = fingerprint(file)
    stat = file.stat()
    file.write_text("two")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert fingerprint(file) == first


def test_fingerprint_of_nothing(tmp_path):
    """A missing file is a data error."""
    with pytest.raises(DataError, match="cannot be read"):
        fingerprint(tmp_path / "a")


@pytest.mark.parametrize("code", ["English", "x/train.conllu", "9_pud", ""])
def test_no_language(code):
    """A code that does not begin with a language code is refused."""
    with pytest.raises(DataError, match="no language code"):
        language_of(code)
