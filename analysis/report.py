"""Tables in, a folder out: page, tables (Markdown, LaTeX, CSV), figures (PNG, SVG, CSV).

    tables --roster, cells, blocks, profiles--> arrays --evidence--> numbers
           --sheets, figures, findings--> files --page--> one HTML file

The same tables give the same bytes.
"""

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from threadpoolctl import threadpool_limits

from analysis import findings, formats, labels, ours, papers, provenance
from analysis.blocks import Block, blocks, lineups, main_metrics
from analysis.cells import cells, scored
from analysis.counted import Counted
from analysis.evidence import align, weigh
from analysis.figures.painters import Painters
from analysis.folder import Folder, slug
from analysis.measured import results
from analysis.page import Chapter, Page, Pictures, anchors_of, render
from analysis.pictures import (
    N_FIGURES,
    Sketch,
    layer_plan,
    overlap_plans,
    plans,
    sketch,
    start_painters,
    study_plans,
)
from analysis.profiles import Profile, profiles
from analysis.reference.published import check_paper
from analysis.roster import Roster, roster
from analysis.searching import Searching, write_searching
from analysis.shared import Overlaps
from analysis.sheets import Sheet, main_sheet, target_sheet
from analysis.tablefiles import OVERVIEW, write_numbers, write_tables
from analysis.tables import Tables


@dataclass(frozen=True, slots=True)
class Report:
    """What was written.

    Attributes:
        page: The HTML page.
        main_table: The main table in Markdown.
        files: Every file, the page included, in the order of their names.
    """

    page: Path
    main_table: str
    files: tuple[Path, ...]


def write_report(
    tables: Tables,
    out: Path,
    *,
    title: str,
    study_text: str | None = None,
    measure: str = "linear-cka",
    targets: Sequence[str] = (),
    seeds: Collection[int] | None = None,
    families: Mapping[str, str] | None = None,
    planned: pa.Table | None = None,
    sentences: pa.Table | None = None,
    overlaps: pa.Table | None = None,
    links: Mapping[str, str] | None = None,
    links_need: str = "",
    include_source: bool = False,
    include_embeddings: bool = False,
    n_figures: int = N_FIGURES,
    painters: Painters | None = None,
    against: str | None = None,
    searching: Searching | None = None,
) -> Report:
    """Analyse the tables of a study and write its report.

    Args:
        tables: Rows of the study's trials.
        out: A folder; made if need be. Files of an earlier report are replaced.
        title: Name of the study.
        study_text: The study file, for the page.
        measure: Which similarity is drawn; the others are in the CSV.
        targets: Declared test sets (`fr_pud`) or languages, in the order of tables. A declared
            test set without scores is shown as missing.
        seeds: Seeds to report; None for all.
        families: Treebank -> family, where its code does not tell (`cells.family_of`).
        planned: Every trial that the study asks for (`roster.roster`).
        sentences: Counts of single sentences (`aside.read_sentences`); None without.
        overlaps: Subword overlaps (`schema.OVERLAP`); None without.
        links: Trial id -> address of its MLflow run.
        links_need: The command that must run for the links to lead anywhere; empty for none.
        include_source: Count the source among the targets of correlations (D-24).
        include_embeddings: Average similarity over states 0..L in place of 1..L.
        n_figures: Blocks that get figures, the first ones; the others have their CSV files.
        painters: Draw the figures; started before the tables were read, they are ready now. None
            starts them here.
        against: A paper (`reference.published.PAPERS`) whose numbers stand beside ours.
        searching: What was searched, and which seeds were added as needed; None for neither.

    Returns:
        What was written.

    Raises:
        UnknownPaper: `against` names none.
    """
    if against is not None:
        check_paper(against)
    folder = Folder(Path(out))
    known = roster(tables.trials, planned)
    # Small matrices gain nothing by more threads, and sums would depend on how many there are.
    one_thread = threadpool_limits(1, user_api="blas")
    own = nullcontext(painters) if painters else start_painters(len(known.settings), n_figures)
    with one_thread, _few_collections(), own as drawing:
        found = scored(tables.scores, known, families)
        metrics = main_metrics(tables.curves, known, found)
        shown = lineups(known, found, metrics, seeds=seeds)
        every = blocks(known, found, shown, declared=targets)
        order = (*targets, *dict.fromkeys(t for block in every for t in block.targets))
        drawn = profiles(tables.similarity, known, shown, order=order)
        counted = None if sentences is None else Counted(sentences, known, found)
        shared = None if overlaps is None else Overlaps(overlaps, tables.trials, known, found)
        study = _Study(known, metrics, every, drawn, measure, counted, shared)
        drafts = [
            _draft(
                folder,
                study,
                i,
                source=include_source,
                embeddings=include_embeddings,
                painters=drawing if i < n_figures else None,
            )
            for i in range(len(study.main))
        ]
        found_of = [draft.chapter.evidence for draft in drafts]
        together = [
            sketch(folder, "study", plan, drawing if n_figures > 0 else None)
            for plan in study_plans(found_of, known)
        ]
        overview = main_sheet(found_of, known)
        _write_tables(folder, study, overview, [draft.chapter for draft in drafts])
        write_numbers(
            folder, cells(found, known, seeds=seeds), drawn, [d.chapter for d in drafts], known
        )
        printed = papers.papers(
            ours.Study(
                known,
                results(found, known, shown, tables.scores),
                drawn,
                tuple(
                    a for d in drafts for a in d.chapter.alignments if a.profile.measure == measure
                ),
                ours.minutes(tables.trials),
            ),
            against,
        )
        papers.write_papers(folder, printed)
        groups = provenance.groups(tables.trials, known)
        page = Page(
            title=title,
            study_text=study_text,
            main=overview,
            chapters=tuple(draft.chapter for draft in drafts),
            known=known,
            failures=findings.failures(known),
            notes=tuple(_notes(study, n_figures)),
            facts=provenance.facts(tables.trials, known),
            groups=groups,
            files=(
                *((name, name) for name in OVERVIEW if folder.root / name in folder.files),
                *printed.files,
            ),
            links=links or {},
            links_need=links_need,
            against=papers.chapter(printed, anchors_of(groups)),
            search=None
            if searching is None
            else write_searching(folder, searching, tables.trials, found_of, known),
        )

        def pictures() -> tuple[Pictures, list[Pictures]]:
            """Of the study, and of each chapter; waits for those that are still being drawn."""
            return (
                [one.finish(folder) for one in together if one is not None],
                [[one.finish(folder) for one in draft.sketches] for draft in drafts],
            )

        path = folder.write("index.html", render(page, pictures))
    return Report(path, formats.markdown(overview), tuple(sorted(folder.files)))


@dataclass(frozen=True, slots=True)
class _Study:
    """What all chapters share."""

    known: Roster
    metrics: Mapping[str, str]
    every: tuple[Block, ...]
    profiles: tuple[Profile, ...]
    measure: str
    counted: Counted | None = None
    shared: Overlaps | None = None

    @property
    def main(self) -> list[Block]:
        """Blocks of each task's main metric."""
        task_of = [setting.task for setting in self.known.settings]
        return [b for b in self.every if b.metric == self.metrics[task_of[b.lineup.setting]]]

    def names(self) -> list[str]:
        """A stem of file names for each main block, safe whatever the names of a study hold."""
        found: list[str] = []
        for block in self.main:
            setting = self.known.settings[block.lineup.setting]
            stem = slug(f"{setting.task}-{setting.source}-{block.family}")
            again = sum(name == stem or name.startswith(f"{stem}--") for name in found)
            found.append(f"{stem}--{again + 1}" if again else stem)
        return found


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for garbage seldom: hundreds of thousands of texts are made here, and few cycles.

    To look through them at Python's own pace takes a tenth of the time.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chapter, and its figures, which are being drawn."""

    chapter: Chapter
    sketches: tuple[Sketch, ...]


def _draft(
    folder: Folder,
    study: _Study,
    index: int,
    *,
    source: bool,
    embeddings: bool,
    painters: Painters | None,
) -> _Draft:
    block, name, known = study.main[index], study.names()[index], study.known
    sets = None if study.counted is None else study.counted.of(block)
    evidence = weigh(block, known, sets=sets)
    own = [profile for profile in study.profiles if profile.lineup is block.lineup]
    found = (
        align(block, profile, known, include_source=source, include_embeddings=embeddings)
        for profile in own
    )
    aligned = tuple(alignment for alignment in found if alignment is not None)
    preferred = tuple(a for a in aligned if a.profile.measure == study.measure)
    profile = next((p for p in own if p.measure == study.measure), None)
    shared = None if study.shared is None else study.shared.of(block)
    said = findings.finding(evidence, preferred, known, shared)
    sheet = target_sheet(evidence, known, name)
    wanted = [
        *layer_plan(block, study.every),
        *plans(evidence, profile, preferred, known),
        *overlap_plans(shared, known.settings[block.lineup.setting].source),
    ]
    sketches = (sketch(folder, name, plan, painters) for plan in wanted)
    kept = tuple(one for one in sketches if one is not None)
    return _Draft(Chapter(said, evidence, sheet, aligned, shared), kept)


def _write_tables(
    folder: Folder, study: _Study, overview: Sheet, chapters: Sequence[Chapter]
) -> None:
    """The tables of the main metrics, and the numbers of the others."""
    others = [block for block in study.every if block not in study.main]
    weighed = [weigh(block, study.known, has_effects=False) for block in others]
    write_tables(folder, overview, chapters, weighed, study.known)


def _notes(study: _Study, n_figures: int) -> Iterator[str]:
    """What a reader should know beside the findings."""
    measures = sorted({profile.measure for profile in study.profiles})
    if measures and study.measure not in measures:
        yield (
            f"No similarity was measured as {labels.measure(study.measure)}; "
            f"there is {', '.join(map(labels.measure, measures))}."
        )
    for profile in study.profiles:
        if profile.n[0] != profile.n[1]:
            yield (
                f"{labels.measure(profile.measure)} was taken on {profile.n[0]} to "
                f"{profile.n[1]} pairs of sentences; values of unlike n are not comparable."
            )
            break
    if len(study.main) > n_figures:
        yield (
            f"Figures are drawn for the first {n_figures} of {len(study.main)} settings; "
            "the data of all of them lie in figures/*.csv."
        )
    if study.counted is not None and study.counted.n_off:
        yield (
            f"{study.counted.n_off} times the counts of single sentences do not add up to the "
            "score beside them; they were left out of intervals over sentences."
        )
    families = {block.family for block in study.main}
    cut = sorted(name for name in families if "[" in name)
    if cut:
        yield f"Test sets cut to their first sentences: {', '.join(cut)}."
