"""LaTeX: every table that a report can write has whole rows, and compiles where there is LaTeX."""

import dataclasses
import math
import re
import shutil
import subprocess

import pytest

from analysis import formats, papertables
from analysis.against import Beside, Line, Pair, Part
from analysis.agreement import agreements
from analysis.ours import Found
from analysis.reference.published import PAPERS, published
from analysis.reference.shapes import shapes
from analysis.sheets import Line as Row
from analysis.sheets import Number, Sheet

EVIL = 'a_b & 50% {of} #1 ~ $x$ \\input{x} ^ <b> "q" [c] * | → … 中 \x1b[0m Škoda'
"""What an error message may hold."""

USED = r"\usepackage{booktabs,graphicx}\usepackage[table]{xcolor}"


def whole(shape):
    """A printed table with a number in every cell that the paper has one for."""
    cells = published(shape.paper).cells

    def pair(spot, column):
        printed = cells.get(spot.printed)
        if printed is None:
            reason = f"seed 1: failed (unknown): {EVIL}"
            return Pair(spot, Found(Number(math.nan, reason=reason)), None, column)
        number = Number(printed.value, spot.query.is_delta, 0.01, 5, (0.0, 1.0), ("t",))
        difference = printed.value if spot.query.is_delta else math.nan
        return Pair(spot, Found(number, difference), printed, column)

    parts = tuple(
        Part(
            section.head,
            tuple(
                Line(row.head, tuple(map(pair, row.spots, shape.columns))) for row in section.rows
            ),
        )
        for section in shape.sections
    )
    return Beside(shape, shape.name, EVIL, parts)


def sheet():
    """A table of ours whose every name is hostile."""
    numbers = (Number(0.5), Number(-0.061, is_delta=True), Number(math.nan, reason=EVIL))
    lines = tuple(Row((EVIL, head), (), numbers) for head in (EVIL, "*", "[x]"))
    return Sheet("evil", EVIL, ("Task", "Source"), ("ref", EVIL, "reinit:1-2"), lines)


@pytest.fixture(scope="module")
def sources():
    """LaTeX by name: every printed table alone and beside, agreement, and hostile names."""
    found = {"evil": formats.latex(sheet())}
    found["tall"] = formats.latex(dataclasses.replace(sheet(), lines=sheet().lines * 100))
    for paper in PAPERS:
        tables = [whole(shape) for shape in shapes(paper)]
        for table in tables:
            found[table.name] = papertables.latex(table, both=False)
            found[f"{table.name}-both"] = papertables.latex(table, both=True)
        agreement = agreements(tables, published(paper))
        found[f"{paper}-agreement"] = papertables.agreement_latex(agreement)
    return found


def test_rows_have_as_many_cells_as_there_are_columns(sources):
    """Between the rules each row has as many cells as the table has columns, headings one wide."""
    for name, text in sources.items():
        spec = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)[1]
        body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
        rows = [row for row in body.splitlines() if row and row != r"\midrule"]
        assert len(rows) > 1, name
        for row in rows:
            assert row.endswith(r" \\"), (name, row)
            span = re.match(r"\\multicolumn\{(\d+)\}", row)
            cells = int(span[1]) if span else len(re.findall(r"(?<!\\)&", row)) + 1
            assert cells == len(spec), (name, row)


def test_groups_and_environments_are_closed(sources):
    """Braces that are no text are balanced, and so is what begins and ends."""
    for name, text in sources.items():
        code = re.sub(r"\\[\\{}%]", "", text)
        assert code.count("{") == code.count("}"), name
        assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text), name
        assert "\x1b" not in text


def test_hostile_names_stay_text():
    """Each special letter is escaped; what LaTeX has no letter for is named by its code."""
    assert formats.escaped("a_b & 50% {x} \\y") == r"a\_b \& 50\% \{x\} \textbackslash{}y"
    assert formats.escaped("[1] * → 中 é") == r"{[}1] {*} $\to$ [U+4E2D] é"


def test_notes_leave_the_size_of_the_text_alone():
    """What makes notes small ends with them."""
    text = formats.latex(sheet())
    assert text.count(r"{\footnotesize") == text.count(r"\footnotesize") == 1
    assert text.endswith("\n}\n")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_every_table_compiles_and_fits_the_page(sources, tmp_path):
    """All compile with pdflatex without an error, and none is wider or higher than the page."""
    pages = []
    for name, text in sources.items():
        (tmp_path / f"{name}.tex").write_text(text, encoding="utf-8")
        pages.append(rf"\typeout{{TABLE {name}}}\noindent\input{{{name}.tex}}\clearpage")
    head = r"\documentclass{article}\usepackage[utf8]{inputenc}" + USED + r"\begin{document}"
    document = "\n".join([head, *pages, r"\end{document}"])
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    log = done.stdout.decode(errors="replace")
    assert not re.findall(r"^!.*", log, flags=re.MULTILINE)
    assert done.returncode == 0
    assert not re.findall(r"^Overfull \\[hv]box.*", log, flags=re.MULTILINE)
    assert log.count("TABLE ") == len(sources)


def test_a_table_without_rows_is_still_a_table():
    """No line at all gives a head between rules."""
    empty = dataclasses.replace(sheet(), lines=())
    assert formats.latex(empty).count(r"\\") == 1
