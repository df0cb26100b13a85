"""Tables and numbers as files: Markdown, LaTeX, CSV with every digit."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pacsv

from analysis import formats, labels
from analysis.effecttables import (
    ADDRESS,
    address,
    effects_csv,
    effects_markdown,
    gaps_csv,
    overlap_csv,
)
from analysis.evidence import Evidence
from analysis.figures.style import to_csv
from analysis.folder import Folder
from analysis.page import Chapter
from analysis.profiles import FINE_TUNED, PRETRAINED, Profile
from analysis.roster import Roster
from analysis.sheets import Sheet, target_sheet

OVERVIEW = (
    "tables/main.md",
    "tables/main.tex",
    "tables/numbers.csv",
    "tables/cells.csv",
    "tables/effects.md",
    "tables/effects.csv",
    "tables/gaps.csv",
    "tables/correlation.csv",
    "tables/overlap.csv",
    "tables/similarity.csv",
)
"""Files that the page links to."""


def write_tables(
    folder: Folder,
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
    folder.write("tables/effects.csv", effects_csv(chapters, known))
    folder.write("tables/effects.md", effects_markdown(chapters))
    folder.write("tables/gaps.csv", gaps_csv(chapters, known))
    if any(chapter.shared for chapter in chapters):
        folder.write("tables/overlap.csv", overlap_csv(chapters, known))


def write_numbers(
    folder: Folder,
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
                whose = (*address(chapter, known), a.profile.measure, state)
                rows.append((*whose, "mean", found.rho_score, found.rho_gap, found.p, math.nan,
                             found.n, *found.interval,
                             found.seed_mean, found.seed_sd, found.n_seeds))  # fmt: skip
                by_layer = zip(a.profile.layers, a.layers[state], *a.p_layers[state], strict=True)
                rows += [
                    (*whose, str(layer), rho, -rho, p, corrected, found.n, *[math.nan] * 4, 0)
                    for layer, rho, p, corrected in by_layer
                ]
    names = ("measure", "state", "layer", "rho_score", "rho_gap", "p", "p_layers", "n_targets",
             "low_95", "high_95", "seed_mean", "seed_sd", "n_seeds")  # fmt: skip
    folder.write("tables/correlation.csv", to_csv((*ADDRESS, *names), rows))
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
