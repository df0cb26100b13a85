"""One HTML file with everything in it: no script, no network, nothing from data left unescaped."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from analysis import formats, labels, printed
from analysis.evidence import Alignment, Estimate, Evidence, gap_intervals
from analysis.findings import NOTEWORTHY, Finding, over_both
from analysis.intervals import Interval
from analysis.power import seeds_for_width, seeds_to_tell
from analysis.provenance import Group, duration
from analysis.roster import Roster, Trial
from analysis.shared import Shared
from analysis.sheets import Number, Sheet

TEMPLATES = Path(__file__).parent / "templates"
_FEW = 5


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure in the page.

    Attributes:
        title: One line.
        caption: What is to be seen.
        svg: The drawing, made safe by `figures.style.inline`.
        files: (name, relative path) of its files.
    """

    title: str
    caption: str
    svg: Markup
    files: tuple[tuple[str, str], ...]


Pictures = Sequence[Picture]


@dataclass(frozen=True, slots=True)
class Chapter:
    """All that the page shows of one block.

    Attributes:
        finding: In words.
        evidence: Its numbers.
        sheet: Scores by target.
        alignments: Similarity against transfer.
        shared: Subword overlap against scores; None where it was not counted.
    """

    finding: Finding
    evidence: Evidence
    sheet: Sheet
    alignments: tuple[Alignment, ...]
    shared: Shared | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Content of the page, before it is laid out.

    Attributes:
        title: Name of the study.
        study_text: The study file; None leaves it out.
        main: The main table.
        chapters: One a block.
        known: Who took part.
        failures: One sentence on trials without numbers; empty when all have.
        notes: What else a reader should know.
        facts: Provenance.
        groups: Every trial.
        files: (name, relative path) of tables beside the page.
        links: Trial id -> address of its tracking run.
        links_need: The command that must run for `links` to lead anywhere; empty for none.
        against: The comparison with a paper (`papers.chapter`); None without.
        search: What searches found (`searching.write_searching`); None without.
    """

    title: str
    study_text: str | None
    main: Sheet
    chapters: tuple[Chapter, ...]
    known: Roster
    failures: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    groups: tuple[Group, ...]
    files: tuple[tuple[str, str], ...]
    links: Mapping[str, str]
    against: Mapping[str, object] | None = None
    links_need: str = ""
    search: Mapping[str, object] | None = None


def anchors_of(groups: Sequence[Group]) -> dict[str, str]:
    """Trial id -> where the page lists it."""
    return {
        trial.trial_id: group.anchor
        for group in groups
        for trial, _ in group.rows
        if trial.trial_id
    }


def render(page: Page, pictures: Callable[[], tuple[Pictures, Sequence[Pictures]]]) -> str:
    """Lay the page out.

    Args:
        page: All but the figures.
        pictures: Gives those of the whole study and those of each chapter; asked last, as they are
            still being drawn.
    """
    anchors = anchors_of(page.groups)
    template = _environment().get_template("page.html.jinja")
    main = _table(page.main, anchors)
    chapters = [_chapter(chapter, anchors) for chapter in page.chapters]
    groups = [_group(group, page.links) for group in page.groups]
    of_study, of_chapters = pictures()
    return template.render(
        page=page,
        css=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own
        main=main,
        chapters=[
            chapter | {"pictures": _pictures(own)}
            for chapter, own in zip(chapters, of_chapters, strict=True)
        ],
        pictures=_pictures(of_study),
        groups=groups,
        absences=_absences(page.groups),
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _absences(groups: Sequence[Group]) -> list[dict[str, str]]:
    """Trials without numbers: those of a cell that lack them for the same reason, in one row."""
    found: list[dict[str, str]] = []
    n_alike = Counter(group.title for group in groups)
    for group in groups:
        alike: dict[tuple[str, str], list[Trial]] = {}
        for trial, _ in group.rows:
            if trial.status != "done":
                alike.setdefault((trial.status, trial.reason), []).append(trial)
        found += [
            {
                "cell": group.title,
                "hyper": group.hyper if n_alike[group.title] > 1 else "",
                "seeds": ", ".join(str(trial.seed) for trial in trials),
                "trials": _some([trial.trial_id for trial in trials if trial.trial_id])
                or printed.DASH,
                "status": status,
                "reason": reason,
            }
            for (status, reason), trials in alike.items()
        ]
    return found


def _chapter(chapter: Chapter, anchors: Mapping[str, str]) -> dict[str, object]:
    return {
        "finding": chapter.finding,
        "table": _table(chapter.sheet, anchors),
        "effects": _effects(chapter.evidence),
        "gaps": _gaps(chapter.evidence),
        "overlap": [] if chapter.shared is None else _overlap(chapter.shared),
        "over_both": over_both(chapter.evidence),
        "correlations": [row for a in chapter.alignments for row in _correlations(a)],
        "n_others": len(chapter.evidence.block.others),
    }


def _pictures(pictures: Pictures) -> list[dict[str, object]]:
    return [
        {
            "title": picture.title,
            "caption": picture.caption,
            "svg": picture.svg,
            "files": picture.files,
        }
        for picture in pictures
    ]


def _table(sheet: Sheet, anchors: Mapping[str, str]) -> dict[str, object]:
    notes = formats.reasons(sheet)
    most = max((number.n for line in sheet.lines for number in line.numbers), default=0)
    bodies: list[dict[str, object]] = []
    rows: list[dict[str, object]] = []
    before = None
    for line in sheet.lines:
        task = line.heads[0] if len(line.heads) > 1 else ""
        if before is None or task != before:
            rows = []
            bodies.append({"head": task, "rows": rows})
            before = task
        cells = [_cell(number, anchors, notes, most) for number in line.numbers]
        rows.append({"head": line.heads[-1], "cells": cells, "is_mean": line.is_mean})
    return {
        "title": sheet.title,
        "head": sheet.heads[-1],
        "columns": formats.heads(sheet),
        "bodies": bodies,
        "notes": notes,
        "width": len(sheet.ablations) + 1,
    }


def _cell(number: Number, anchors: Mapping[str, str], notes: Sequence[str], most: int) -> Markup:
    """A table cell: the number, a link to its trials, and all that is known of it as a tip.

    Args:
        number: What it shows.
        anchors: Trial id -> where the page lists it.
        notes: Reasons below the table.
        most: Seeds of the table's best known number; one with fewer says so.
    """
    colour = printed.colour(number.value) if number.is_delta else ""
    text = printed.typeset(formats.shown(number, 2))
    if number.reason:
        mark = notes.index(number.reason) + 1
        text = printed.DASH if math.isnan(number.value) else text
        return Markup(  # noqa: S704 - what may hold anything is escaped
            f'<td class="none" title="{escape(number.reason)}">{text}<sup>{mark}</sup></td>'
        )
    known = [] if math.isnan(number.sd) else [f"±{printed.score(number.sd)}"]
    known += [f"n {number.n}"] if number.n < most else []
    spread = f"<small>{' '.join(known)}</small>" if known else ""
    anchor = anchors.get(number.trials[0], "") if number.trials else ""
    return Markup(  # noqa: S704 - as above; the rest are numbers
        f'<td class="{colour}"><a href="#{escape(anchor)}" title="{escape(tip(number))}">{text}</a>'
        f"{spread}</td>"
    )


def tip(number: Number) -> str:
    """All that is known of a number, in one line: more digits, n, sd, interval, trials."""
    unit = "points against REF" if number.is_delta else "%"
    parts = [f"{printed.typeset(formats.shown(number, 4))} {unit}"]
    what = "paired seed" if number.is_delta else "seed"
    parts.append(f"n = {number.n} {what}{'s' * (number.n != 1)}")
    if not math.isnan(number.sd):
        low, high = (printed.typeset(printed.score(end)) for end in number.interval)
        parts.append(f"sd {printed.score(number.sd)}, 95 % interval {low} to {high}")
    if not math.isnan(number.both[0]):
        low, high = (printed.typeset(printed.score(end)) for end in number.both)
        over = "seeds and sentences" if number.n > 1 else "sentences"
        parts.append(f"95 % interval over {over} {low} to {high}")
    parts.append(f"trials {_some(number.trials)}")
    if number.against:
        parts.append(f"reference {_some(number.against)}")
    return "; ".join(parts)


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _FEW} more" if len(ids) > _FEW else ""
    return ", ".join(ids[:_FEW]) + more


def _effects(evidence: Evidence) -> list[dict[str, str]]:
    return [
        {
            "ablation": labels.ablation_column(effect.ablation),
            "source": _estimate(effect.source),
            "source_both": _interval(effect.source.over_both),
            "others_both": _interval(effect.others.over_both),
            "beyond_both": _interval(effect.beyond.over_both),
            "others": _estimate(effect.others),
            "over_targets": _interval(effect.others.over_targets),
            "beyond": _estimate(effect.beyond),
            "beyond_over_targets": _interval(effect.beyond.over_targets),
            "p": _p(effect.p_beyond[0]),
            "holm": _p(effect.p_beyond[1]),
            "n": str(effect.others.n),
            "sd": "" if math.isnan(effect.others.sd) else printed.score(effect.others.sd),
            "width": _seeds(seeds_for_width(effect.others.sd, NOTEWORTHY)),
            "tell": _seeds(seeds_to_tell(NOTEWORTHY, effect.others.sd)),
        }
        for effect in evidence.effects
    ]


def _gaps(evidence: Evidence) -> list[dict[str, str]]:
    """The gap to the mean of the other languages, of each ablation's own models."""
    gap = evidence.gap_x
    if gap is None:
        return []
    return [
        {
            "ablation": labels.ablation_column(name),
            "gap": printed.typeset(printed.score(float(gap.mean[a]))) or printed.DASH,
            "over_seeds": _interval(ends[0]),
            "both": _interval(ends[1]),
            "n": str(int(gap.n[a])),
        }
        for a, name in enumerate(evidence.block.lineup.ablations)
        for ends in [gap_intervals(evidence, a)]
    ]


def _seeds(n: float) -> str:
    if math.isnan(n):
        return printed.DASH
    return f"{n:,.0f}" if math.isfinite(n) else "many"


def _estimate(estimate: Estimate) -> str:
    text = printed.typeset(printed.delta(estimate.mean)) or printed.DASH
    interval = _interval(estimate.over_seeds)
    return text if interval == printed.DASH else f"{text} {interval}"


def _interval(interval: Interval) -> str:
    if math.isnan(interval[0]):
        return printed.DASH
    low, high = (printed.typeset(printed.score(end, 1)) for end in interval)
    return f"[{low}, {high}]"


def _p(p: float) -> str:
    return printed.p_value(p).removeprefix("p = ").removeprefix("p ")


def _correlations(alignment: Alignment) -> list[dict[str, str]]:
    rows = []
    for state, found in alignment.whole.items():
        by_layer = alignment.layers[state]
        best = ""
        if not all(math.isnan(rho) for rho in by_layer):
            k = max(
                range(len(by_layer)), key=lambda i: -2.0 if math.isnan(by_layer[i]) else by_layer[i]
            )
            corrected = printed.p_value(float(alignment.p_layers[state][1, k]))
            best = f"{_rho(float(by_layer[k]))} (layer {alignment.profile.layers[k]}, {corrected})"
        spread = printed.DASH
        if found.n_seeds > 1:
            spread = f"{_rho(found.seed_mean)} ± {found.seed_sd:.2f} ({found.n_seeds} seeds)"
        low, high = found.interval
        rows.append(
            {
                "state": state,
                "measure": labels.measure(alignment.profile.measure),
                "score": _rho(found.rho_score),
                "gap": _rho(found.rho_gap),
                "interval": printed.DASH if math.isnan(low) else f"[{_rho(low)}, {_rho(high)}]",
                "p": _p(found.p),
                "n": str(found.n),
                "seeds": spread,
                "best": best,
            }
        )
    return rows


def _overlap(shared: Shared) -> list[dict[str, str]]:
    return [
        {
            "kind": {"types": "distinct subwords", "tokens": "all subwords"}[kind],
            "r": _rho(found.r),
            "p": _p(found.p),
            "n": str(found.n),
            "mean": printed.score(float(shared.overlap[kind].mean()), 1),
        }
        for kind, found in shared.correlation.items()
    ]


def _rho(rho: float) -> str:
    return printed.DASH if math.isnan(rho) else printed.typeset(f"{rho:.2f}")


def _group(group: Group, links: Mapping[str, str]) -> dict[str, object]:
    rows = [_trial(trial, row or {}, links.get(trial.trial_id, "")) for trial, row in group.rows]
    return {"group": group, "rows": Markup("\n").join(rows)}


def _trial(trial: Trial, facts: Mapping[str, Any], url: str) -> Markup:
    """One row of the list of trials; by hand, as the template took a second for ten thousand."""
    memory, finished = facts.get("peak_memory"), facts.get("finished")
    name = escape(trial.trial_id or printed.DASH)
    # Only web addresses become links: `javascript:` must not.
    if url.startswith(("https://", "http://")):
        name = Markup(f'<a href="{escape(url)}" rel="noreferrer">{name}</a>')  # noqa: S704 - escaped
    reason = f' title="{escape(trial.reason)}"' if trial.reason else ""
    cells = (
        facts.get("best_epoch") or "",
        duration(facts.get("train_s")),
        duration(facts.get("evaluate_s")),
        f"{memory / 1e9:.1f} GB" if memory else "",
    )
    where = escape(", ".join(filter(None, (facts.get("host"), facts.get("device")))))
    commit = escape((facts.get("git_commit") or "")[:10])
    return Markup(  # noqa: S704 - what may hold anything is escaped; the rest are numbers
        f'<tr class="{escape(trial.status)}"><th scope="row" class="id">{name}</th>'
        f"<td>{trial.seed}</td><td{reason}>{escape(trial.status)}</td>"
        f"{''.join(f'<td>{cell}</td>' for cell in cells)}"
        f'<td class="id">{commit}</td><td>{where}</td>'
        f"<td>{f'{finished:%Y-%m-%d %H:%M}' if finished else ''}</td></tr>"
    )
