"""The papers' tables from a study's rows: their files, and what the page shows of one paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis import papertables, printed
from analysis.against import Beside, Pair, beside
from analysis.agreement import Agreement, agreements, readings
from analysis.folder import Folder
from analysis.ours import Study
from analysis.page import tip
from analysis.papertables import SUSPECT, show
from analysis.reference.published import PAPERS, published
from analysis.reference.shapes import shapes


@dataclass(frozen=True, slots=True)
class Papers:
    """Printed tables that a study has rows for.

    Attributes:
        tables: Of all papers, in their order.
        against: The paper that is compared with; empty for none.
        agreement: How well ours agree with it.
    """

    tables: tuple[Beside, ...]
    against: str = ""
    agreement: tuple[Agreement, ...] = ()

    @property
    def compared(self) -> tuple[Beside, ...]:
        """Tables of the paper that is compared with."""
        return tuple(table for table in self.tables if table.shape.paper == self.against)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """(name, relative path) of the tables' files, as the page links to them."""
        return tuple(
            (f"{table.name}.{ending}", f"papers/{table.name}.{ending}")
            for table in self.tables
            for ending in ("md", "tex", "csv")
        )


def papers(study: Study, against: str | None = None) -> Papers:
    """Fill the tables of every paper.

    Args:
        study: Our side.
        against: Paper to compare with.

    Raises:
        UnknownPaper: there is none of that name.
    """
    tables = tuple(
        table for paper in PAPERS for table in beside(study, shapes(paper), published(paper))
    )
    found = Papers(tables, against or "")
    if against is None:
        return found
    return Papers(tables, against, agreements(found.compared, published(against)))


def write_papers(folder: Folder, found: Papers) -> None:
    """Every table in Markdown, LaTeX and CSV; those of one paper once more, beside its numbers."""
    for table in found.tables:
        folder.write(f"papers/{table.name}.md", papertables.markdown(table, both=False))
        folder.write(f"papers/{table.name}.tex", papertables.latex(table, both=False))
        folder.write(f"papers/{table.name}.csv", papertables.csv([table]))
    if not found.against:
        return
    for table in found.compared:
        folder.write(f"against/{table.name}.md", papertables.markdown(table, both=True))
        folder.write(f"against/{table.name}.tex", papertables.latex(table, both=True))
    folder.write(f"against/{found.against}.csv", papertables.csv(found.compared))
    folder.write("against/agreement.md", papertables.agreement_markdown(found.agreement))
    folder.write("against/agreement.tex", papertables.agreement_latex(found.agreement))
    folder.write("against/agreement.csv", papertables.agreement_csv(found.agreement))


def chapter(found: Papers, anchors: Mapping[str, str]) -> dict[str, object] | None:
    """What the page shows of the comparison; None where there is none.

    Args:
        found: The tables.
        anchors: Trial id -> where the page lists it.
    """
    if not found.against:
        return None
    files = [("agreement.csv", "against/agreement.csv")]
    files += [(f"{found.against}.csv", f"against/{found.against}.csv")]
    return {
        "paper": PAPERS[found.against],
        "heads": papertables.AGREEMENT,
        "rows": [
            [printed.typeset(cell) if i > 2 else cell for i, cell in enumerate(row)]  # noqa: PLR2004 - after the three names
            for row in papertables.agreement_rows(found.agreement)
        ],
        "explained": papertables.explained(found.agreement),
        "readings": [papertables.reading_text(one) for one in readings(found.compared)],
        "tables": [_table(table, anchors) for table in found.compared],
        "files": files,
    }


def _table(table: Beside, anchors: Mapping[str, str]) -> dict[str, object]:
    notes = papertables.notes_of(table, both=True)
    return {
        "title": papertables.title(table),
        "columns": table.shape.columns,
        "parts": [
            {
                "head": part.head,
                "rows": [
                    (line.head, [_cell(pair, table, notes, anchors) for pair in line.pairs])
                    for line in part.lines
                ],
            }
            for part in table.parts
        ],
        "notes": notes,
        "width": len(table.shape.columns) + 1,
    }


def _cell(pair: Pair, table: Beside, notes: Sequence[str], anchors: Mapping[str, str]) -> Markup:
    """Ours above, published and difference below; n, sd and trials as a tip."""
    shown = show(pair, table, both=True)
    marks = ",".join(str(notes.index(note) + 1) for note in shown.notes)
    inner = printed.typeset(", ".join(filter(None, (shown.published, shown.difference))))
    dagger = SUSPECT if shown.is_suspect else ""
    number = None if pair.ours is None else pair.ours.number
    below = Markup("<small>{}{}</small>").format(f"({inner})" if inner else "", dagger)
    above = Markup("{}<sup>{}</sup>").format(printed.typeset(shown.ours), marks)
    if number is None or not number.trials:
        return Markup('<td class="none" title="{}">{}{}</td>').format(
            "; ".join(shown.notes), above, below
        )
    anchor = anchors.get(number.trials[0], "")
    said = tip(number) if pair.spot.query.kind == "score" else f"n = {number.n}"
    return Markup('<td class="{}"><a href="#{}" title="{}">{}</a>{}</td>').format(
        shown.colour, anchor, "; ".join((said, *shown.notes)), above, below
    )
