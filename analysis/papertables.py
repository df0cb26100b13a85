"""Printed tables with our numbers, alone or beside the published ones: Markdown, LaTeX, CSV.

Rounding happens here, last; CSV keeps every digit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis import formats, labels, printed
from analysis.against import Beside, Pair
from analysis.agreement import ITSELF, Agreement, Reading
from analysis.figures.style import to_csv

CSV_COLUMNS = (
    "paper", "table", "section", "row", "column", "encoder", "task", "metric", "source", "target",
    "eval_set", "ablation", "kind", "ours", "published", "difference", "same_in_print", "counts",
    "sd", "n", "low_95", "high_95", "marks", "reason", "trial_ids", "reference_trial_ids",
)  # fmt: skip
SUSPECT = "\N{DAGGER}"
"""Marks a published number that counts in no agreement."""

_RAW_DIGITS = {"rho": 2, "cosine": 4}


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as text, with ASCII minus signs.

    Attributes:
        ours: Our number, or a dash.
        published: The published one as printed; empty where there is none.
        difference: Ours less published; empty unless both are there.
        colour: A class of `printed.CLASSES`, or empty.
        notes: What stands below the table about it.
        is_suspect: Whether the published number is marked.
    """

    ours: str
    published: str
    difference: str
    colour: str
    notes: tuple[str, ...]
    is_suspect: bool


def show(pair: Pair, table: Beside, *, both: bool) -> Shown:
    """Round a cell for print.

    Args:
        pair: The cell.
        table: Whose cell it is.
        both: Whether the published number is shown, too.
    """
    kind, digits = pair.spot.query.kind, table.shape.digits
    number = None if pair.ours is None else pair.ours.number
    notes: list[str] = []
    if number is None:
        notes.append("not part of this study")
    elif number.reason:
        notes.append(number.reason)
    thresholds = table.shape.thresholds
    colour = ""
    if thresholds and pair.ours is not None:
        colour = printed.colour(pair.ours.difference, thresholds)
    if not both:
        return Shown(_number(pair.value, kind, digits, pair.spot.query.is_delta) or printed.DASH,
                     "", "", colour, tuple(notes), is_suspect=False)  # fmt: skip
    if pair.printed is None:
        notes.append("no published number: it is missing in the extraction of the paper")
    else:
        notes += [doubt.text for doubt in pair.printed.doubts]
    return Shown(
        _number(pair.value, kind, digits, pair.spot.query.is_delta) or printed.DASH,
        _published(pair),
        _number(pair.difference, kind, digits, is_delta=True),
        colour,
        tuple(notes),
        pair.is_suspect,
    )


def _number(value: float, kind: str, digits: int, is_delta: bool) -> str:
    if math.isnan(value):
        return ""
    if kind == "score":
        return (printed.delta if is_delta else printed.score)(value, digits)
    sign = "+" if is_delta and value > 0 else ""
    if kind in _RAW_DIGITS:
        return f"{sign}{value:.{_RAW_DIGITS[kind]}f}"
    return f"{sign}{value:.3g}"


def _published(pair: Pair) -> str:
    if pair.printed is None:
        return ""
    is_gain = pair.printed.is_delta and pair.printed.value > 0
    return f"+{pair.printed.text}" if is_gain else pair.printed.text


def notes_of(table: Beside, *, both: bool) -> tuple[str, ...]:
    """Every note of a table once, in the order of its cells."""
    found = (note for pair in table.pairs for note in show(pair, table, both=both).notes)
    return tuple(dict.fromkeys(found))


def title(table: Beside) -> str:
    """`Table 6 of first-align: ...; mBERT`."""
    shape = table.shape
    return f"Table {shape.number} of {shape.paper}: {shape.title} ({table.encoder})"


def markdown(table: Beside, *, both: bool) -> str:
    """The table in Markdown, ours alone or `ours (published, difference)`."""
    notes = notes_of(table, both=both)
    columns = table.shape.columns
    text = [f"**{formats.plain(title(table))}**", ""]
    if both:
        text += [f"Ours (published, difference). {SUSPECT}: counts in no agreement.", ""]
    for part in table.parts:
        text += ["| " + " | ".join(map(formats.plain, (part.head, *columns))) + " |"]
        text += ["| --- |" + " ---: |" * len(columns)]
        for line in part.lines:
            cells = [_markdown_cell(show(p, table, both=both), notes) for p in line.pairs]
            text.append("| " + " | ".join([formats.plain(line.head), *cells]) + " |")
        text.append("")
    if table.shape.thresholds:
        mild, severe = (f"{100 * loss:g}" for loss in table.shape.thresholds)
        text.append(f"**bold**: at least {severe} points below REF; *italic*: at least {mild}.")
    text += [f"[{i}] {formats.plain(note)}" for i, note in enumerate(notes, 1)]
    return "\n".join(text) + "\n"


def _markdown_cell(shown: Shown, notes: Sequence[str]) -> str:
    around = {"down2": "*", "down5": "**"}.get(shown.colour, "")
    text = f"{around}{shown.ours}{around}"
    if shown.published:
        inner = ", ".join(filter(None, (shown.published, shown.difference)))
        text += f" ({inner}){SUSPECT if shown.is_suspect else ''}"
    marks = ",".join(str(notes.index(note) + 1) for note in shown.notes)
    return f"{text} [{marks}]" if marks else text


def latex(table: Beside, *, both: bool) -> str:
    """The table in LaTeX (booktabs), cells coloured by class."""
    notes = notes_of(table, both=both)
    columns = table.shape.columns
    body = [" & ".join(["", *map(formats.escaped, columns)]) + r" \\"]
    for part in table.parts:
        body.append(r"\midrule")
        if part.head:
            head = formats.escaped(part.head)
            body.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\emph{{{head}}}}} \\")
        for line in part.lines:
            cells = [_latex_cell(show(p, table, both=both), notes) for p in line.pairs]
            body.append(" & ".join([formats.escaped(line.head), *cells]) + r" \\")
    return formats.tabular(title(table), f"l{'r' * len(columns)}", body, notes)


def _latex_cell(shown: Shown, notes: Sequence[str]) -> str:
    colour = formats.CELL.get(shown.colour, "")
    text = (rf"\cellcolor{{{colour}}}" if colour else "") + _math(shown.ours)
    if shown.published:
        inner = ", ".join(_math(part) for part in (shown.published, shown.difference) if part)
        dagger = r"$^\dagger$" if shown.is_suspect else ""
        text += rf" {{\scriptsize ({inner}){dagger}}}"
    marks = ",".join(str(notes.index(note) + 1) for note in shown.notes)
    return text + (rf"\textsuperscript{{{marks}}}" if marks else "")


def _math(text: str) -> str:
    return text.replace("-", "$-$").replace(printed.DASH, "--")


def csv(tables: Sequence[Beside]) -> str:
    """One row a cell, both sides: fractions with all digits, marks, n, sd, interval, trials."""
    rows = [
        (table.shape.paper, table.shape.number, part.head, line.head, pair.column, table.encoder,
         *_csv_cell(pair))
        for table in tables
        for part in table.parts
        for line in part.lines
        for pair in line.pairs
    ]  # fmt: skip
    return to_csv(CSV_COLUMNS, rows)


def _csv_cell(pair: Pair) -> tuple[object, ...]:
    query, paper = pair.spot.query, pair.printed
    number = None if pair.ours is None else pair.ours.number
    has_both = not math.isnan(pair.difference)
    counts = has_both and not pair.is_suspect and not query.is_mean
    return (
        query.task, pair.spot.printed[7], query.source, pair.spot.printed[4], pair.spot.printed[5],
        query.ablation, "delta" if query.is_delta else query.kind, pair.value,
        math.nan if paper is None else paper.value, pair.difference,
        pair.is_same_in_print if has_both else "", counts if paper else "",
        math.nan if number is None else number.sd, 0 if number is None else number.n,
        *((math.nan, math.nan) if number is None else number.interval),
        "; ".join(doubt.text for doubt in paper.doubts) if paper else "no published number",
        "not part of this study" if number is None else number.reason,
        "" if number is None else " ".join(number.trials),
        "" if number is None else " ".join(number.against),
    )  # fmt: skip


AGREEMENT = (
    "Table", "Task", "Source", "Cells", "Ours lacks", "Left out", "Scores within",
    "Deltas within", "Signs agree", "Layer profile", "Each target", "Targets", "Mean off",
)  # fmt: skip
"""Heads of the table of agreement."""


def agreement_rows(found: Sequence[Agreement]) -> list[tuple[str, ...]]:
    """Agreement as text, one row each."""
    several = len({one.encoder for one in found}) > 1
    return [
        (
            one.table.rpartition("-")[2].upper() + (f", {one.encoder}" if several else ""),
            f"{labels.task(one.task)} ({one.metric})",
            "each itself" if one.source == ITSELF else labels.language(one.source),
            str(one.n_printed),
            str(one.n_missing),
            str(one.n_left_out),
            _share(one.scores_within, one.n_scores),
            _share(one.deltas_within, one.n_deltas),
            _share(one.signs_agree, one.n_signs),
            _rho(one.profile, one.n_profile[0]),
            _rho(one.profile_median, one.n_profile[1]),
            _rho(*one.targets),
            printed.score(one.mean_off) or printed.DASH,
        )
        for one in found
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else printed.DASH


def _rho(rho: float, n: int) -> str:
    return printed.DASH if math.isnan(rho) else f"{rho:.2f} ({n})"


def explained(found: Sequence[Agreement]) -> str:
    """What the columns of the table of agreement mean."""
    allowed = sorted({one.tolerance for one in found})
    text = ", ".join(printed.score(tolerance) for tolerance in allowed)
    return (
        f"Within: at most {text} points off (2, or three times the largest printed sd of the "
        "task). Left out: suspect cells and printed means. Layer profile: Spearman's rho over "
        "ablations (how many) of the difference to REF, mean over targets; each target: median of "
        "their own rho (targets). Targets: rho over targets (how many) of what REF scores. "
        "Mean off: mean absolute difference in points."
    )


def reading_text(reading: Reading) -> str:
    """How well one reading of a doubtful row fits, as a sentence."""
    return (
        f'Table {reading.table}, row "{reading.head}": {printed.score(reading.off)} points off '
        f"on average over {reading.n} cells."
    )


def agreement_markdown(found: Sequence[Agreement]) -> str:
    """The table of agreement in Markdown."""
    rule = ["---"] * 3 + ["---:"] * (len(AGREEMENT) - 3)
    rows = [AGREEMENT, rule, *agreement_rows(found)]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, "", explained(found)]) + "\n"


def agreement_latex(found: Sequence[Agreement]) -> str:
    """The table of agreement in LaTeX."""
    rows = [
        " & ".join([*map(formats.escaped, row[:3]), *map(_math, row[3:])]) + r" \\"
        for row in agreement_rows(found)
    ]
    head = " & ".join(AGREEMENT) + r" \\"
    spec = "lll" + "r" * (len(AGREEMENT) - 3)
    body = [head, r"\midrule", *rows]
    return formats.tabular("Agreement with the paper", spec, body, (), explained(found))


def agreement_csv(found: Sequence[Agreement]) -> str:
    """The figures of agreement with all digits."""
    names = (
        "table", "task", "source", "metric", "encoder", "n_printed", "n_missing", "n_left_out",
        "n_scores", "scores_within", "n_deltas", "deltas_within", "n_signs", "signs_agree",
        "tolerance", "mean_off", "profile", "profile_median",
    )  # fmt: skip
    rows = [
        (*(getattr(one, name) for name in names), *one.n_profile, *one.targets) for one in found
    ]
    more = ("n_ablations", "n_complete_targets", "rho_targets", "n_targets")
    return to_csv((*names, *more), rows)
