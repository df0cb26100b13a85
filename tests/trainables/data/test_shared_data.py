import csv
import os
from pathlib import Path

import pytest

from trainables.data.conllu import check_tree, read_conllu
from trainables.data.parallel import align
from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref

SHARED = Path(os.environ.get("XLING_SHARED", Path(__file__).parents[4] / "shared"))
MANIFEST = SHARED / "data" / "MANIFEST.tsv"
PUD = "ar zh cs en fr de is id it ja ko pl pt ru es sv tr"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not MANIFEST.exists(), reason="the shared data folder is not here"),
]


def manifest():
    """Rows of the manifest that count sentences."""
    if not MANIFEST.exists():
        return []
    with MANIFEST.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in rows if row["sentences"] != "-"]


TREEBANKS = [row for row in manifest() if row["path"].endswith(".conllu")]


@pytest.mark.parametrize("entry", TREEBANKS, ids=lambda entry: entry["path"])
def test_counts(entry):
    """Every CoNLL-U file is read with the sentences and words that the manifest counts."""
    sentences = read_conllu(str(SHARED / "data" / entry["path"]))
    n_words = sum(len(sentence.words) for sentence in sentences)
    assert (len(sentences), n_words) == (int(entry["sentences"]), int(entry["tokens"]))
    assert all(len(s.words) == len(s.upos) == len(s.heads) == len(s.deprels) for s in sentences)


@pytest.mark.parametrize("entry", TREEBANKS, ids=lambda entry: entry["path"])
def test_trees(entry):
    """Every sentence of a UD release is one tree; only the original tweets have several roots."""
    sentences = read_conllu(str(SHARED / "data" / entry["path"]))
    faults = [fault for fault in map(check_tree, sentences) if fault]
    if entry["path"].startswith("tweebank/en-"):
        assert faults
        assert all(fault.endswith("are all roots") for fault in faults)
    else:
        assert faults == []


def parallel(codes):
    """The sentences of some PUD treebanks."""
    refs = [data_ref(SHARED / "data", f"{code}_pud", "test") for code in codes]
    return {ref.language: (ref.location, read_conllu(ref.location)) for ref in refs}


def test_pud_agrees():
    """Seventeen PUD treebanks hold the same thousand sentences, Icelandic in another order."""
    files = parallel(PUD.split())
    found = align(files)
    assert {len(rows) for rows in found.values()} == {1000}
    ids = {
        language: [files[language][1][i].sent_id for i in rows] for language, rows in found.items()
    }
    assert all(column == ids["en"] for column in ids.values())
    assert found["is"] != found["en"]
    assert found["tr"] == found["en"]


def test_galician_pud():
    """Of five wrong Galician ids one belongs to the sentence before it; all are dropped."""
    files = parallel(["en", "gl"])
    with pytest.raises(DataError, match=r"out of the common order.*: n01086031.*995 sentences"):
        align(files)
    found = align(files, "drop")
    kept = {files["en"][1][i].sent_id for i in found["en"]}
    assert len(kept) == 995
    assert kept.isdisjoint({"n01086031", "n01087005", "n01049033", "n01115013", "w01030092"})
    assert found["en"] == found["gl"]
