"""Names of data sets: which file they mean, in which layout, of which language."""

import csv
import os
from pathlib import Path

import pytest

from trainables.data.datasets import FAMILIES
from trainables.data.languages import UD_CODES, ud_code
from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref, language_of
from trainables.registry import LAYOUTS, load

SHARED = Path(os.environ.get("XLING_SHARED", Path(__file__).parents[4] / "shared"))
MANIFEST = SHARED / "data" / "MANIFEST.tsv"

FILES = [
    "ner/wikiann/en/train",
    "ner/wikiann/en/dev",
    "ner/wikiann/de/test",
    "ner/panx/test-de.tsv",
    "ner/panx-unlabelled/test-fr.tsv",
    "udpos/test-de.tsv",
    "xnli/xtreme/test-de.tsv",
    "xnli/crlf/test-de.tsv",
    "xnli/kornli/xnli.dev.ko.tsv",
    "pawsx/xtreme/test-de.tsv",
    "pawsx/x-final/zh/test_2k.tsv",
    "MasakhaNER/swa/test.txt",
    "MasakhaNER2.0/hau/test.txt",
    "MasakhaNER/hau/test.txt",
    "uner/UNER_English-EWT/en_ewt-ud-test.iob2",
    "uner/UNER_English-PUD/en_pud-ud-test.iob2",
    "conll2003/eng.train",
    "conll2003/eng.testa",
    "conll2002/ned.testb",
    "sib200/zho_Hans/test.tsv",
    "sib200/zho_Hant/test.tsv",
    "sib200/eng_Latn/test.tsv",
    "masakhanews/eng/test.tsv",
]


@pytest.fixture
def root(tmp_path):
    """A data folder in which every data set lies as it is published; all contents differ."""
    for path in FILES:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "split", "path", "layout", "language"),
    [
        ("wikiann-en", "train", "ner/wikiann/en/train", "wikiann", "en"),
        ("wikiann-de", "test", "ner/wikiann/de/test", "wikiann", "de"),
        ("panx-de", "test", "ner/panx/test-de.tsv", "panx", "de"),
        ("udpos-de", "test", "udpos/test-de.tsv", "udpos", "de"),
        ("kornli-ko", "dev", "xnli/kornli/xnli.dev.ko.tsv", "kornli", "ko"),
        ("pawsx-de", "test", "pawsx/xtreme/test-de.tsv", "pawsx", "de"),
        ("pawsx-zh", "test", "pawsx/x-final/zh/test_2k.tsv", "pawsx-final", "zh"),
        ("masakhaner-swa", "test", "MasakhaNER/swa/test.txt", "masakhaner", "sw"),
        ("masakhaner-sw", "test", "MasakhaNER/swa/test.txt", "masakhaner", "sw"),
        ("masakhaner-ha@2.0", "test", "MasakhaNER2.0/hau/test.txt", "masakhaner", "ha"),
        ("uner-en_ewt", "test", "uner/UNER_English-EWT/en_ewt-ud-test.iob2", "uner", "en"),
        ("conll-en", "train", "conll2003/eng.train", "conll", "en"),
        ("conll-eng", "dev", "conll2003/eng.testa", "conll", "en"),
        ("conll-nl", "test", "conll2002/ned.testb", "conll", "nl"),
        ("sib200-en", "test", "sib200/eng_Latn/test.tsv", "sib200", "en"),
        ("sib200-zho_Hant", "test", "sib200/zho_Hant/test.tsv", "sib200", "zh"),
        ("masakhanews-en", "test", "masakhanews/eng/test.tsv", "masakhanews", "en"),
        ("conll:conll2003/eng.testa", "dev", "conll2003/eng.testa", "conll", "en"),
        ("wikiann:ner/wikiann/en/{split}", "dev", "ner/wikiann/en/dev", "wikiann", "en"),
        ("panx:ner/panx/{split}-de.tsv", "test", "ner/panx/test-de.tsv", "panx", "de"),
        (
            "uner/UNER_English-PUD/en_pud-ud-{split}.iob2",
            "test",
            "uner/UNER_English-PUD/en_pud-ud-test.iob2",
            "uner",
            "en",
        ),
    ],
)
def test_a_name_finds_its_file(root, code, split, *, path, layout, language):
    """Data set, language and split say which file is read, by which reader."""
    ref = data_ref(root, code, split)
    assert ref.location == str(root / path)
    assert (ref.code, ref.split, ref.layout, ref.language) == (code, split, layout, language)


@pytest.mark.parametrize(
    ("code", "split", "message"),
    [
        ("wikiann-fr", "test", "no file fr/test. There is wikiann-de."),
        ("wikiann-de", "train", "no file de/train. Of wikiann-de there is: test."),
        ("wikian-de", "test", "'wikian-de' is no treebank code. Did you mean wikiann-de?"),
        ("panx-fr", "test", "no file test-fr.tsv below a folder 'panx'. There is panx-de."),
        ("uner-en_ewtt", "test", "Did you mean uner-en_ewt?"),
        ("uner-en", "test", "different files for 'uner-en' (test)"),
        ("uner-en", "test", "Write uner-en_ewt or uner-en_pud."),
        ("masakhaner-hau", "test", "Name the release, as in 'masakhaner-hau@2.0'"),
        ("masakhaner-yor@2.0", "test", "no file yor/test.txt below a folder 'masakhaner' of rel"),
        ("sib200-zh", "test", "Write sib200-zho_Hans or sib200-zho_Hant."),
        ("udpos-de", "dev", "Of udpos-de there is: test."),
        ("xnli-de", "test", "2 different files for 'xnli-de'"),
        ("wikiann:../x/en/test", "test", "leaves the data folder"),
        ("conl:x/en.txt", "test", "unknown layout 'conl'. Did you mean 'conll'?"),
        ("ner/wikiann/en/dev", "dev", "the layout of 'ner/wikiann/en/dev' is not said"),
        ("conll:conll2003/eng.testc", "dev", "Did you mean conll2003/eng.testa"),
    ],
)
def test_a_name_without_one_file_is_refused(root, code, split, message):
    """What cannot be found is told with the closest names that can."""
    (root / "x").mkdir()
    (root / "x/en.txt").write_text("")
    with pytest.raises(DataError) as caught:
        data_ref(root, code, split)
    assert message in str(caught.value)


def test_nothing_of_a_data_set(tmp_path):
    """An empty folder asks to fetch the data set."""
    with pytest.raises(DataError, match="no file of wikiann below the folder; fetch it"):
        data_ref(tmp_path, "wikiann-en", "train")


@pytest.mark.parametrize("code", ["wikiann-", "wikiann-English", "panx:x/test.tsv", "uner-EN"])
def test_a_name_without_language_is_refused(code):
    """A name must say its language."""
    with pytest.raises(DataError, match="no language code"):
        language_of(code)


@pytest.mark.parametrize(
    ("text", "code"),
    [("eng_Latn", "en"), ("swa", "sw"), ("pcm", "pcm"), ("en_ewt", "en"), ("Eng", None)],
)
def test_languages_are_written_as_ud_writes_them(text, code):
    """Codes of three letters become UD's where UD has a shorter one."""
    assert ud_code(text) == code


def test_every_layout_named_has_a_reader():
    """Families point at readers of the registry; long codes have three letters, UD's have two."""
    layouts = {family.layout for families in FAMILIES.values() for family in families}
    assert layouts <= set(LAYOUTS)
    assert {(len(long), len(short)) for long, short in UD_CODES.items()} == {(3, 2)}


def rows():
    """Counted files of the shared data that a data set's name can mean, one row a file."""
    if not MANIFEST.exists():
        return []
    with MANIFEST.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [r for r in table if r["sentences"] != "-" and r["path"].startswith(tuple(NAMES))]


NAMES = {
    "ner/wikiann/": "wikiann-{language}",
    "ner/panx/": "panx-{language}",
    "ner/uner/": "uner-{stem}",
    "ner/masakhaner/": "masakhaner-{language}",
    "udpos/": "udpos-{language}",
}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(not MANIFEST.exists(), reason="the shared data folder is not here")
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["path"])
def test_every_real_file_is_found_and_read_by_its_name(row):
    """Name, language and split give the file of the manifest, and its reader the counts there."""
    name = next(name for start, name in NAMES.items() if row["path"].startswith(start))
    stem = Path(row["path"]).name.split("-ud-")[0]
    ref = data_ref(SHARED / "data", name.format(stem=stem, **row), row["split"])
    assert Path(ref.location) == (SHARED / "data" / row["path"]).absolute()
    assert ref.language == row["language"]
    sentences = load("layout", ref.layout, LAYOUTS)(ref.location, ref.limit)
    n_words = sum(len(sentence.words) for sentence in sentences)
    assert (len(sentences), n_words) == (int(row["sentences"]), int(row["tokens"]))
