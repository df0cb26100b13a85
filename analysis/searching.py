"""The part of a report on what was decided by results: hyper-parameters, seeds, and when it ran."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis import labels, printed, winners
from analysis.enough import two_stage_interval
from analysis.evidence import Evidence
from analysis.figures import style
from analysis.figures.style import to_csv
from analysis.figures.timeline import draw_timeline, timeline_data
from analysis.folder import Folder
from analysis.formats import plain
from analysis.page import Picture
from analysis.roster import Roster
from analysis.sheets import setting_title
from analysis.tables import Tables

_CAPTION = (
    "One row a slot, one bar a trial. Where searching and reporting overlap, no cell waited for "
    "another one's search."
)


@dataclass(frozen=True, slots=True)
class Searching:
    """What a report needs to know of a study that decides by results.

    Attributes:
        searched: Every point that was tried (`winners.SEARCHED`).
        tables: Rows of those trials.
        first_seeds: Seeds of every cell, where more were added as needed; empty where not.
    """

    searched: pa.Table
    tables: Tables
    first_seeds: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """One difference whose number of seeds was decided by its first ones.

    Attributes:
        title: Setting.
        ablation: Which.
        n_first: Seeds that decided.
        n: Seeds in all.
        mean: Mean difference over the other languages.
        low: Two-stage interval, 95 %.
        high: Its other end.
    """

    title: str
    ablation: str
    n_first: int
    n: int
    mean: float
    low: float
    high: float


def write_searching(
    folder: Folder, what: Searching, trials: pa.Table, found: Sequence[Evidence], known: Roster
) -> dict[str, object]:
    """Write tables and the timeline; what the page says of them.

    Args:
        folder: Where they go.
        what: What was searched.
        trials: Rows of the reported trials.
        found: Evidence of the main blocks.
        known: Who took part.
    """
    chosen = winners.winners(what.searched, what.tables.scores)
    files = []
    if chosen:
        every = winners.csv(what.searched, what.tables.scores)
        for name, text in (
            ("tables/winners.md", winners.markdown(chosen)),
            ("tables/winners.tex", winners.latex(chosen)),
            ("tables/search.csv", every),
        ):
            folder.write(name, text)
            files.append((name, name))
    added = tuple(_added(found, known, what.first_seeds)) if what.first_seeds else ()
    if added:
        folder.write("tables/seeds.csv", _csv(added))
        folder.write("tables/seeds.md", markdown(added))
        files += [(name, name) for name in ("tables/seeds.md", "tables/seeds.csv")]
    rows = pa.concat_tables([trials, what.tables.trials])
    return {
        "heads": winners.HEADS,
        "lines": [tuple(map(printed.typeset_numbers, line)) for line in winners.lines(chosen)],
        "note": winners.note(chosen) if chosen else "",
        "added": list(_shown(added)),
        "seeds_note": SEEDS_NOTE,
        "picture": _timeline(folder, rows),
        "files": files,
    }


def _added(found: Sequence[Evidence], known: Roster, first: Collection[int]) -> Iterator[Added]:
    several = len({setting.encoder for setting in known.settings}) > 1
    for evidence in found:
        lineup = evidence.block.lineup
        if evidence.delta_x is None:
            continue
        is_first = np.array([seed in first for seed in lineup.seeds], bool)
        title = setting_title(known.settings[lineup.setting], several_encoders=several)
        for a, ablation in enumerate(lineup.ablations):
            if a == lineup.reference:
                continue
            values = evidence.delta_x.by_seed[a]
            there = ~np.isnan(values)
            mean = float(values[there].mean()) if there.any() else math.nan
            ends = two_stage_interval(values, is_first)
            n_first = int((there & is_first).sum())
            yield Added(title, ablation, n_first, int(there.sum()), mean, *ends)


def markdown(added: Sequence[Added]) -> str:
    """Differences and their seeds, in Markdown."""
    heads = ("Setting", "Ablation", "First seeds", "Seeds", "Difference", "95 %")
    text = ["**Seeds that were added** (mean difference to REF on the other languages, points)", ""]
    text += ["| " + " | ".join(heads) + " |", "| --- | --- | ---: | ---: | ---: | --- |"]
    text += ["| " + " | ".join(map(plain, row)) + " |" for row in _shown(added)]
    return "\n".join([*text, "", SEEDS_NOTE]) + "\n"


SEEDS_NOTE = (
    "The spread of the first seeds decided how many there are, and alone makes these intervals "
    "(Stein's two stages), which so keep their 95 %. The t intervals of the other tables take all "
    "seeds as if their number had been fixed before, and hold a little less."
)


def _shown(added: Sequence[Added]) -> Iterator[tuple[str, ...]]:
    for row in added:
        ends = f"{printed.delta(row.low)} to {printed.delta(row.high)}"
        yield (
            row.title,
            labels.ablation_column(row.ablation),
            str(row.n_first),
            str(row.n),
            printed.delta(row.mean) or printed.DASH,
            printed.DASH if math.isnan(row.low) else ends,
        )


def _csv(added: Sequence[Added]) -> str:
    names = ("setting", "ablation", "n_first", "n", "mean", "low_95", "high_95")
    rows = [(r.title, r.ablation, r.n_first, r.n, r.mean, r.low, r.high) for r in added]
    return to_csv(names, rows)


def _timeline(folder: Folder, trials: pa.Table) -> Picture | None:
    data = timeline_data(trials)
    if data is None:
        return None
    drawing = draw_timeline(data)
    text = style.svg(drawing)
    paths = [
        folder.write("figures/timeline.csv", data.csv()),
        folder.write("figures/timeline.svg", text),
        folder.write("figures/timeline.png", style.png(drawing)),
    ]
    links = tuple((p.suffix[1:].upper(), p.relative_to(folder.root).as_posix()) for p in paths)
    alt = f"{data.title}. {_CAPTION} The numbers are in the CSV file."
    return Picture(data.title, _CAPTION, style.inline(text, "timeline", alt), links)
