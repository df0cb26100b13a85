"""Tables in, a folder out: page, tables (Markdown, LaTeX, CSV), figures (PNG, SVG, CSV).

    tables --roster, cells, blocks, profiles--> arrays --evidence--> numbers
           --sheets, figures, findings--> files --page--> one HTML file

The same tables give the same bytes.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pacsv

from analysis import findings, formats, labels, provenance
from analysis.blocks import Block, blocks, lineups, main_metrics
from analysis.cells import cells, scored
from analysis.correlation import LEAST
from analysis.evidence import Alignment, Evidence, align, weigh
from analysis.figures import gap_similarity, heatmap, layer_curves, style
from analysis.figures.gap_similarity import GapSimilarity, draw_gap_similarity
from analysis.figures.heatmap import Heatmap, draw_heatmap
from analysis.figures.layer_curves import Curves, draw_curves
from analysis.figures.style import Drawing, to_csv
from analysis.page import Chapter, Page, Picture, render
from analysis.profiles import FINE_TUNED, PRETRAINED, Profile, profiles
from analysis.roster import Roster, roster
from analysis.sheets import Sheet, main_sheet, target_sheet
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


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where files go; remembers which."""

    root: Path
    files: list[Path] = field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        self.files.append(path)
        return path


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
    links: Mapping[str, str] | None = None,
    include_source: bool = False,
    include_embeddings: bool = False,
    n_figures: int = 9,
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
        links: Trial id -> address of its MLflow run.
        include_source: Count the source among the targets of correlations (D-24).
        include_embeddings: Average similarity over states 0..L in place of 1..L.
        n_figures: Blocks that get figures, the first ones; the others have their CSV files.

    Returns:
        What was written.
    """
    folder = _Folder(Path(out))
    known = roster(tables.trials, planned)
    found = scored(tables.scores, known, families)
    metrics = main_metrics(tables.curves, known, found)
    shown = lineups(known, found, metrics, seeds=seeds)
    every = blocks(known, found, shown, declared=targets)
    order = (*targets, *dict.fromkeys(t for block in every for t in block.targets))
    drawn = profiles(tables.similarity, known, shown, order=order)
    study = _Study(known, metrics, every, drawn, measure)
    source, embeddings = include_source, include_embeddings
    chapters = [
        _chapter(folder, study, i, source=source, embeddings=embeddings, draw=i < n_figures)
        for i in range(len(study.main))
    ]
    overview = main_sheet([chapter.evidence for chapter in chapters], known)
    others = [block for block in every if block not in study.main]
    _write_tables(
        folder,
        overview,
        chapters,
        [weigh(block, known, has_effects=False) for block in others],
        known,
    )
    _write_numbers(folder, cells(found, known, seeds=seeds), drawn, chapters, known)
    page = Page(
        title,
        study_text,
        overview,
        tuple(chapters),
        known,
        findings.failures(known),
        tuple(_notes(study, n_figures)),
        provenance.facts(tables.trials, known),
        provenance.groups(tables.trials, known),
        tuple((name, name) for name in _OVERVIEW if folder.root / name in folder.files),
        links or {},
    )
    path = folder.write("index.html", render(page))
    return Report(path, formats.markdown(overview), tuple(sorted(folder.files)))


@dataclass(frozen=True, slots=True)
class _Study:
    """What all chapters share."""

    known: Roster
    metrics: Mapping[str, str]
    every: tuple[Block, ...]
    profiles: tuple[Profile, ...]
    measure: str

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
            stem = _slug(f"{setting.task}-{setting.source}-{block.family}")
            again = sum(name == stem or name.startswith(f"{stem}--") for name in found)
            found.append(f"{stem}--{again + 1}" if again else stem)
        return found


def _chapter(
    folder: _Folder, study: _Study, index: int, *, source: bool, embeddings: bool, draw: bool
) -> Chapter:
    block, name, known = study.main[index], study.names()[index], study.known
    evidence = weigh(block, known)
    own = [profile for profile in study.profiles if profile.lineup is block.lineup]
    found = (
        align(block, profile, known, include_source=source, include_embeddings=embeddings)
        for profile in own
    )
    aligned = tuple(alignment for alignment in found if alignment is not None)
    preferred = tuple(a for a in aligned if a.profile.measure == study.measure)
    profile = next((p for p in own if p.measure == study.measure), None)
    said = findings.finding(evidence, preferred, known)
    sheet = target_sheet(evidence, known, name)
    plans = _plans(evidence, profile, preferred, known)
    pictures = tuple(_picture(folder, name, plan, draw=draw) for plan in plans)
    return Chapter(said, evidence, sheet, aligned, tuple(p for p in pictures if p is not None))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A figure to be made: its data, how to draw it, what to say about it."""

    stem: str
    data: Curves | Heatmap | GapSimilarity
    caption: str

    def draw(self) -> Drawing:
        if isinstance(self.data, Curves):
            return draw_curves(self.data)
        if isinstance(self.data, Heatmap):
            return draw_heatmap(self.data)
        return draw_gap_similarity(self.data)


def _plans(
    evidence: Evidence, profile: Profile | None, alignments: Sequence[Alignment], known: Roster
) -> Iterator[_Plan]:
    """The figures of a block, the most telling first."""
    block = evidence.block
    source = known.settings[block.lineup.setting].source
    deltas = heatmap.delta_data(evidence)
    if deltas is not None:
        yield _Plan("deltas", deltas, "Each language under each ablation; orange is a loss.")
    if profile is not None:
        by_ablation = layer_curves.by_ablation_data(profile, source)
        yield _Plan("layers-by-ablation", by_ablation, _LINES)
        scores = evidence.scores.mean[block.lineup.reference or 0]
        pairs = list(zip(block.targets, scores.tolist(), strict=True))
        by_target = layer_curves.by_target_data(profile, source, pairs)
        if by_target is not None:
            yield _Plan("layers-by-target", by_target, "Mean over seeds. " + _CHANCE)
    for alignment in alignments:
        for state in (FINE_TUNED, PRETRAINED):
            points = gap_similarity.gap_similarity_data(alignment, state, source)
            if points is not None:
                yield _Plan(f"gap-{state}", points, "Each point is a language; low is good.")
        if len(alignment.targets) >= LEAST:
            rho = layer_curves.correlation_data(alignment)
            yield _Plan("correlation-by-layer", rho, "Up: closer languages transfer better.")
    cells_of = None if profile is None else heatmap.similarity_data(profile, source)
    if cells_of is not None:
        yield _Plan("similarity", cells_of, "Fine-tuned reference, mean over seeds.")


_CHANCE = "Grey: shuffled pairs of sentences, mean to 95 % quantile."
_LINES = f"Black: reference; dashed: before fine-tuning; colours: ablations. {_CHANCE}"
_OVERVIEW = (
    "tables/main.md",
    "tables/main.tex",
    "tables/numbers.csv",
    "tables/cells.csv",
    "tables/effects.csv",
    "tables/correlation.csv",
    "tables/similarity.csv",
)


def _picture(folder: _Folder, name: str, plan: _Plan, *, draw: bool) -> Picture | None:
    """Write a figure's data, and the figure itself if it is to be drawn."""
    stem = f"figures/{name}-{plan.stem}"
    files = [folder.write(f"{stem}.csv", plan.data.csv())]
    if not draw:
        return None
    drawing = plan.draw()
    text = style.svg(drawing)
    files += [folder.write(f"{stem}.svg", text), folder.write(f"{stem}.png", style.png(drawing))]
    links = tuple(
        (path.suffix[1:].upper(), path.relative_to(folder.root).as_posix()) for path in files
    )
    alt = f"{plan.data.title}. {plan.caption} The numbers are in the CSV file."
    return Picture(plan.data.title, plan.caption, style.inline(text, _slug(stem), alt), links)


def _write_tables(
    folder: _Folder,
    overview: Sheet,
    chapters: Sequence[Chapter],
    others: Sequence[Evidence],
    known: Roster,
) -> None:
    """Every table in Markdown and LaTeX, all their numbers (of all metrics) in one CSV."""
    for sheet in [overview, *(chapter.sheet for chapter in chapters)]:
        folder.write(f"tables/{sheet.name}.md", formats.markdown(sheet))
        folder.write(f"tables/{sheet.name}.tex", formats.latex(sheet))
    sheets = [chapter.sheet for chapter in chapters]
    sheets += [target_sheet(evidence, known, "") for evidence in others]
    folder.write("tables/numbers.csv", formats.csv(sheets))
    rows = [
        (*_address(chapter, known), effect.ablation, name, estimate.mean, estimate.sd, estimate.n,
         *estimate.over_seeds, *estimate.over_targets, *p)
        for chapter in chapters
        for effect in chapter.evidence.effects
        for name, estimate, p in (
            ("source", effect.source, (math.nan, math.nan)),
            ("others", effect.others, effect.p_others),
            ("beyond", effect.beyond, effect.p_beyond),
        )
    ]  # fmt: skip
    names = ("delta", "mean", "sd", "n", "low_seeds", "high_seeds", "low_targets", "high_targets",
             "p_targets", "p_holm")  # fmt: skip
    folder.write("tables/effects.csv", to_csv((*_ADDRESS, "ablation", *names), rows))


_ADDRESS = ("encoder", "task", "detail", "family", "metric", "source")


def _address(chapter: Chapter, known: Roster) -> tuple[str, ...]:
    block = chapter.evidence.block
    setting = known.settings[block.lineup.setting]
    whose = (setting.encoder, setting.task, setting.detail)
    return (*whose, block.family, block.metric, setting.source)


def _write_numbers(
    folder: _Folder,
    every: pa.Table,
    drawn: Sequence[Profile],
    chapters: Sequence[Chapter],
    known: Roster,
) -> None:
    """Cells of all hyper-parameters; similarity by ablation, target, layer; correlations."""
    folder.write("tables/cells.csv", _cells_csv(every))
    rows = []
    for chapter in chapters:
        for a in chapter.alignments:
            for state, found in a.whole.items():
                whose = (*_address(chapter, known), a.profile.measure, state)
                rows.append((*whose, "mean", found.rho_score, found.rho_gap, found.p, found.n,
                             *found.interval,
                             found.seed_mean, found.seed_sd, found.n_seeds))  # fmt: skip
                by_layer = zip(a.profile.layers, a.layers[state], a.p_layers[state], strict=True)
                rows += [
                    (*whose, str(layer), rho, -rho, p, found.n, *[math.nan] * 4, 0)
                    for layer, rho, p in by_layer
                ]
    names = ("measure", "state", "layer", "rho_score", "rho_gap", "p", "n_targets",
             "low_95", "high_95", "seed_mean", "seed_sd", "n_seeds")  # fmt: skip
    folder.write("tables/correlation.csv", to_csv((*_ADDRESS, *names), rows))
    if drawn:
        folder.write("tables/similarity.csv", _similarity_csv(drawn, known))


def _cells_csv(every: pa.Table) -> str:
    """Cells, their lists as text."""
    columns = {}
    for name in every.column_names:
        column = every[name].combine_chunks()
        if pa.types.is_list(column.type):
            column = pc.binary_join(column.cast(pa.list_(pa.string())), " ")
        columns[name] = column
    return _arrow_csv(pa.table(columns))


def _similarity_csv(drawn: Sequence[Profile], known: Roster) -> str:
    """Every mean over seeds: state x ablation x target x layer."""
    parts = []
    for profile in drawn:
        setting, lineup = known.settings[profile.lineup.setting], profile.lineup
        means = np.concatenate([profile.mean(), profile.pretrained[None]])
        side, target, layer = np.nonzero(~np.isnan(means))
        states = [FINE_TUNED] * len(lineup.ablations) + [PRETRAINED]
        whose = {"encoder": setting.encoder, "task": setting.task, "detail": setting.detail,
                 "source": setting.source, "measure": profile.measure}  # fmt: skip
        parts.append(
            pa.table(
                {
                    **{
                        name: pa.array([text] * len(side), pa.string())
                        for name, text in whose.items()
                    },
                    "state": pa.array(states, pa.string()).take(pa.array(side)),
                    "ablation": pa.array([*lineup.ablations, labels.REFERENCE]).take(
                        pa.array(side)
                    ),
                    "target": pa.array(profile.targets, pa.string()).take(pa.array(target)),
                    "layer": pa.array(profile.layers, pa.int64()).take(pa.array(layer)),
                    "mean": pa.array(means[side, target, layer]),
                }
            )
        )
    return _arrow_csv(pa.concat_tables(parts))


def _arrow_csv(table: pa.Table) -> str:
    """A big table as CSV, floats with all their digits."""
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(quoting_style="needed"))
    data: bytes = sink.getvalue().to_pybytes()
    return data.decode()


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
    families = {block.family for block in study.main}
    cut = sorted(name for name in families if "[" in name)
    if cut:
        yield f"Test sets cut to their first sentences: {', '.join(cut)}."


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"
