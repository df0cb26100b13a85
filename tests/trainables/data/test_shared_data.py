import csv
import io
import os
from collections import Counter
from pathlib import Path

import pytest

from trainables.data import bio, tsv
from trainables.data.conllu import check_tree, read_conllu
from trainables.data.parallel import align
from trainables.data.sentence import DataError
from trainables.data.treebanks import data_ref

SHARED = Path(os.environ.get("XLING_SHARED", Path(__file__).parents[4] / "shared"))
MANIFEST = SHARED / "data" / "MANIFEST.tsv"
PUD = "ar zh cs en fr de is id it ja ko pl pt ru es sv tr"

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,  # reads 3 million words: half a minute
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
TAGGED = {
    "ner/wikiann/": bio.read_wikiann,
    "ner/panx": bio.read_panx,
    "ner/uner/": bio.read_uner,
    "ner/masakhaner/": bio.read_masakhaner,
    "udpos/": bio.read_udpos,
}
TABLES = {
    "xnli/xtreme/": (tsv.read_xnli, tsv.XNLI),
    "xnli/crlf/": (tsv.read_xnli, tsv.XNLI),
    "xnli/kornli/": (tsv.read_kornli, tsv.KORNLI),
    "xnli/americasnli/": (tsv.read_americasnli, tsv.AMERICASNLI),
    "pawsx/xtreme/": (tsv.read_pawsx, tsv.PAWSX),
    "pawsx/x-final/": (tsv.read_pawsx_final, tsv.PAWSX_FINAL),
    "sib200/": (tsv.read_sib200, tsv.SIB200),
    "masakhanews/": (tsv.read_masakhanews, tsv.MASAKHANEWS),
}


def reader_of(entry, readers):
    """What reads a file of the manifest; None if no reader of these does."""
    return next((r for start, r in readers.items() if entry["path"].startswith(start)), None)


def test_every_file_has_a_reader():
    """No counted file of the shared data is left without a reader."""
    known = (*TAGGED, *TABLES, "langid/")
    rest = [row["path"] for row in manifest() if not row["path"].startswith(known)]
    assert [path for path in rest if not path.endswith(".conllu")] == []


@pytest.mark.parametrize("entry", TREEBANKS, ids=lambda entry: entry["path"])
def test_treebanks(entry):
    """Every CoNLL-U file has the manifest's sentences and words, all annotated, and holds trees.

    Only the original tweets are allowed several roots.
    """
    sentences = read_conllu(str(SHARED / "data" / entry["path"]))
    n_words = sum(len(sentence.words) for sentence in sentences)
    assert (len(sentences), n_words) == (int(entry["sentences"]), int(entry["tokens"]))
    assert all(len(s.words) == len(s.upos) == len(s.heads) == len(s.deprels) for s in sentences)
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


@pytest.mark.parametrize(
    "entry", [e for e in manifest() if reader_of(e, TAGGED)], ids=lambda entry: entry["path"]
)
def test_tagged_counts(entry):
    """Every file of tagged words is read with the sentences and words that the manifest counts."""
    sentences = reader_of(entry, TAGGED)(str(SHARED / "data" / entry["path"]))
    n_words = sum(len(sentence.words) for sentence in sentences)
    assert (len(sentences), n_words) == (int(entry["sentences"]), int(entry["tokens"]))
    n_tags = sum(len(sentence.tags) + len(sentence.upos) for sentence in sentences)
    assert n_tags == (0 if "no labels" in entry["split"] else n_words)


def test_both_layouts_of_wikiann_agree():
    """The same split in both layouts gives the same words and tags."""
    ours = bio.read_wikiann(str(SHARED / "data/ner/wikiann/en/dev"))
    theirs = bio.read_panx(str(SHARED / "data/ner/panx/dev-en.tsv"))
    bare = bio.read_panx(str(SHARED / "data/ner/panx-unlabelled/test-de.tsv"))
    labelled = bio.read_wikiann(str(SHARED / "data/ner/wikiann/de/test"))
    assert [(s.words, s.tags) for s in ours] == [(s.words, s.tags) for s in theirs]
    assert [s.words for s in bare] == [s.words for s in labelled]


@pytest.mark.parametrize(
    "entry", [e for e in manifest() if reader_of(e, TABLES)], ids=lambda entry: entry["path"]
)
def test_tables(entry):
    """Every table gives its count of examples, and writing them again gives the file's own lines.

    MasakhaNEWS lines are compared up to their web address, which is not read.
    """
    path = SHARED / "data" / entry["path"]
    reader, layout = reader_of(entry, TABLES)
    examples = reader(str(path))
    assert len(examples) == int(entry["sentences"])
    lines = path.read_text(encoding="utf-8").split("\n")  # read_text makes CR LF a line feed
    for example in examples:
        fields = {
            **dict.fromkeys(("id", "index_id"), example.example_id),
            "language": example.language,
            layout.pair: example.pair,
            layout.label: example.label,
            **dict(zip(layout.text, example.text.split("\n"), strict=True)),
        }
        cells = [fields[name] for name in layout.columns if fields.get(name)]
        assert lines[example.line - 1].startswith(written(cells, is_quoted=layout.is_quoted))


def written(cells, *, is_quoted):
    """One line of a table."""
    if not is_quoted:
        return "\t".join(cells)
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="").writerow(cells)
    return out.getvalue()


@pytest.mark.parametrize("split", ["train", "test"])
def test_language_identification(split):
    """Texts and labels pair off, evenly over twenty languages."""
    folder = SHARED / "data/langid/sib200-wili-layout"
    examples = tsv.read_wili(str(folder / f"x_{split}.txt"))
    counts = Counter(example.label for example in examples)
    assert len(examples) == {"train": 4000, "test": 2000}[split]
    assert sorted(counts.values()) == [len(examples) // 20] * 20
