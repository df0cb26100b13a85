"""Published numbers: read whole, checked, and doubted by rule."""

import csv
from collections import Counter
from decimal import Decimal

import pytest

from analysis.reference.doubts import doubts_of
from analysis.reference.published import (
    COLUMNS,
    HERE,
    PAPERS,
    PublishedError,
    UnknownPaper,
    published,
    read_published,
    row_means,
)
from analysis.reference.shapes import shapes

MEANS = row_means(HERE / "row_means.csv")


def cell(paper, *address):
    """One printed number; the address without empty columns in between must be spelt out."""
    return published(paper).cells[address]


@pytest.fixture
def damaged(tmp_path):
    """Writes a file of published numbers with these rows, and gives its path."""

    def write(*rows, columns=COLUMNS):
        path = tmp_path / "first-align.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([columns, *rows])
        return path

    return write


ROW = ("first-align", "6", "parsing", "mbert", "en", "fr", "pud-test", "ref", "las", "74.04",
       "percent", "")  # fmt: skip


def test_every_number_of_every_paper_is_read():
    """The files hold 1,709, 528 and 122 numbers, and `talk.csv` 27: 2,386 with no other."""
    counts = {name: len(published(name).cells) for name in PAPERS}
    assert counts == {"first-align": 1709, "beto": 528, "dlfa": 122}
    talk = read_published(HERE / "talk.csv", MEANS)
    assert sum(counts.values()) + len(talk.cells) == 2386


def test_a_percentage_is_stored_as_the_fraction_of_its_text():
    """53.23 percent is the double nearest to 0.5323, and text and digits stay as printed."""
    found = cell("first-align", "6", "parsing", "mbert", "en", "X", "mean-over-targets", "ref",
                 "las")  # fmt: skip
    assert (found.value, found.text, found.digits) == (0.5323, "53.23", 2)
    assert not found.is_delta


def test_numbers_without_percent_stay_as_they_are():
    """Learning rates and rho are no percentages."""
    address = ("3", "ner", "mbert", "", "", "", "ref", "best_learning_rate")
    assert cell("first-align", *address).value == 3.5e-5
    rho = ("4", "pos", "mbert", "en", "X", "pud+gap", "pretrained", "spearman_gap_vs_cka")
    assert cell("first-align", *rho).value == 0.82


@pytest.mark.parametrize(("task", "sd"), [("parsing", 0.0148), ("pos", 0.0238), ("ner", 0.0262)])
def test_the_largest_printed_sd_is_that_of_the_caption_of_table_5(task, sd):
    """Parsing 1.48, POS 2.38, NER 2.62 points; a task without one has 0."""
    assert published("first-align").largest_sd(task) == sd
    assert published("beto").largest_sd(task) == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [ROW, ROW],
            "first-align.csv:3: 6 parsing mbert en fr pud-test ref las stands there twice",
        ),
        ([("beto", *ROW[1:])], "first-align.csv:2: document 'beto'; the file holds first-align"),
        ([(*ROW[:9], "74,04", *ROW[10:])], "first-align.csv:2: value '74,04' is no number"),
        ([(*ROW[:10], "per cent", "")], "first-align.csv:2: unit 'per cent'. Known: percent"),
    ],
)
def test_a_damaged_file_says_where_and_what(damaged, rows, message):
    """Twice the same cell, another document, no number, an unknown unit."""
    with pytest.raises(PublishedError, match=message.replace("(", r"\(")):
        read_published(damaged(*rows), MEANS)


def test_other_columns_are_refused(damaged):
    """A file without `note` is none of ours."""
    with pytest.raises(PublishedError, match=r"columns document, .*unit"):
        read_published(damaged(ROW[:-1], columns=COLUMNS[:-1]), MEANS)


def test_an_unknown_paper_is_answered_with_the_closest():
    """`first-aling` is a slip of `first-align`."""
    with pytest.raises(UnknownPaper, match=r"'first-aling'\. Did you mean 'first-align'\? Known"):
        published("first-aling")


def test_the_verdicts_on_printed_means_follow_from_the_printed_rows():
    """Each verdict is that of the mean of the 16 other rows, computed here from the cells."""
    cells = published("first-align").cells
    checked = Counter()
    for (table, task, source, ablation), (missing, verdict) in MEANS.items():
        metric = {"parsing": "las", "pos": "acc", "ner": "f1"}[task]
        rows = [
            Decimal(printed.text)
            for key, printed in cells.items()
            if (key[0], key[1], key[3], key[6]) == (table, task, source, ablation)
            and key[4] not in {"X", source}
        ]
        mean = (table, task, "mbert", source, "X", "mean-over-targets", ablation, metric)
        off = abs(Decimal(cells[mean].text) - sum(rows) / 16)
        if not missing:
            assert len(rows) == 16
            assert verdict == ("ok (<=0.01)" if off <= Decimal("0.01") else "does not reproduce")
        checked[verdict] += 1
    assert checked == {"does not reproduce": 57, "ok (<=0.01)": 3, "incomplete row": 3}


def test_what_the_doubts_leave_out():
    """By kind: W's LAS and derived cells count nowhere, Table 5's scores count as differences."""
    kinds = Counter(
        (paper, doubt.kind, doubt.leaves_out)
        for paper in PAPERS
        for printed in published(paper).cells.values()
        for doubt in printed.doubts
        if doubt.leaves_out != "nothing"
    )
    assert kinds == {
        ("first-align", "mean", "all"): 114,  # 57 in Tables 6-8, and again in Table 1
        ("first-align", "suspect", "all"): 7,
        ("first-align", "label", "all"): 63,  # 3 tasks x 3 sources x 7
        ("first-align", "relative", "value"): 7,
        ("first-align", "inferred", "value"): 156,
        ("beto", "derived", "all"): 2,
        ("beto", "informational", "all"): 96,  # (31 languages + average) x 3 systems of mBERT
    }


def test_table_1_and_table_8_disagree_on_english_ner():
    """83.30 in one, 83.27 in the other: both say so, and both count."""
    one = cell("first-align", "1", "ner", "mbert", "en", "en", "wikiann-test", "ref", "f1")
    assert [doubt.text for doubt in one.doubts] == ["Table 8 prints 83.27"]
    assert not one.is_suspect


def test_rounding_is_no_disagreement():
    """DLFA's Table II prints 65.40 where Table V prints 65.4030."""
    assert not any(
        doubt.kind == "twice" for p in published("dlfa").cells.values() for doubt in p.doubts
    )


def test_a_note_of_two_parts_gives_two_doubts():
    """The one cell that is both suspect and in the Slovenian row."""
    note = ("suspect: sign possibly lost; printed Slovenian; probably Swedish (no Slovenian PUD "
            "exists)")  # fmt: skip
    address = ("8", "ner", "mbert", "ar", "sl", "wikiann-test", "5-6", "f1")
    assert [d.kind for d in doubts_of("first-align", address, note, {})] == ["suspect", "label"]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_shapes_hold_every_number_of_our_systems_once(paper):
    """Each printed number of a table has its place; only NER's second reading has two."""
    found = Counter(
        spot.printed
        for shape in shapes(paper)
        for section in shape.sections
        for row in section.rows
        for spot in row.spots
    )
    assert {n for key, n in found.items() if (key[0], key[4]) != ("8", "sl")} == {1}
    cells = published(paper).cells
    unprinted = {key for key in found if key not in cells}
    gaps = {("8", "ner", "mbert", "en", target, "wikiann-test", ablation, "f1")
            for target, ablation in (("fr", "1-2"), ("ja", "3-4"))}  # fmt: skip
    assert unprinted == (gaps if paper == "first-align" else set())
    tables = {shape.number for shape in shapes(paper)}
    left = {key for key in cells if key not in found and key[0] in tables}
    ours = {key for key in left if key[2].startswith(("mbert", "D_", "baseline"))}
    in_words = {"std_over_seeds_min", "std_over_seeds_median", "std_over_seeds_max"}
    assert {key[7] for key in ours} <= in_words | {"acc"}
    assert {key[5] for key in ours if key[7] == "acc"} <= {"test-translate-train"}


@pytest.mark.parametrize(
    ("place", "ablation", "test"),
    [
        (("first-align", "6", "French", "1-2"), "reinit:1-2", "fr_pud"),
        (("first-align", "6", "Slovenian (printed), Swedish", "REF"), "ref", "sv_pud"),
        (("first-align", "8", "Slovenian (printed)", "3-4"), "reinit:3-4", "wikiann-sl"),
        (("first-align", "5", "Turkish", "ALL"), "all", "tr_imst"),
        (("first-align", "2", "EN LIT. (LinES)", "11-12"), "reinit:11-12", "en_lines"),
        (("beto", "4", "mBERT, zero-shot", "Dutch"), "ref", "conll-ned"),
        (("beto", "6", "Norwegian", "+ gold POS LAS"), "gold-pos", "no_*@2.2"),
        (("dlfa", "IV", "D_6", "Korean"), "fuse:6", "pawsx-ko"),
    ],
)
def test_a_cell_is_looked_for_where_our_rows_have_it(place, ablation, test):
    """Ablation and test set of some cells, in our names."""
    paper, table, row, column = place
    shape = next(shape for shape in shapes(paper) if shape.number == table)
    rows = [found for section in shape.sections for found in section.rows if found.head == row]
    query = rows[0].spots[shape.columns.index(column)].query
    assert (query.ablation, query.tests[0][0]) == (ablation, test)


def test_gates_of_fusion_have_names_of_their_own():
    """`D_11_G` and `D_11_L` are variants of fuse:11, not layers."""
    shape = next(shape for shape in shapes("dlfa") if shape.number == "V")
    names = [row.spots[0].query.ablation for row in shape.sections[0].rows]
    assert names[:4] == ["ref", "fuse:11/global", "fuse:11/local", "fuse:11"]


def test_a_printed_mean_is_over_the_16_other_languages():
    """X of English is the table's languages less English, Swedish where it says Slovenian."""
    shape = next(shape for shape in shapes("first-align") if shape.number == "7")
    query = shape.sections[0].rows[0].spots[0].query
    assert len(query.targets) == 16
    assert "en" not in query.targets
    assert {"sv", "ru"} <= set(query.targets)
    assert "sl" not in query.targets
