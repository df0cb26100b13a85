"""A table as Markdown, LaTeX and CSV. Rounding happens here, last; CSV keeps every digit."""

from collections.abc import Sequence

from analysis import labels, printed
from analysis.figures.style import to_csv
from analysis.sheets import Number, Sheet

CSV_COLUMNS = (
    "encoder", "task", "detail", "family", "metric", "source", "target", "treebank", "ablation",
    "kind", "value", "sd", "n", "low_95", "high_95", "low_both", "high_both",
    "trial_ids", "reference_trial_ids", "reason",
)  # fmt: skip

_MARKS = {"down2": ("*", "*"), "down5": ("**", "**")}
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "[": "{[}", "*": "{*}",  # a row that began with them would lose them
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\symbol{34}",
    "\N{RIGHTWARDS ARROW}": r"$\to$", "\N{MINUS SIGN}": "$-$", "\N{EN DASH}": "--",
    "\N{EM DASH}": "---", "\N{HORIZONTAL ELLIPSIS}": r"\dots{}", "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "\N{LESS-THAN OR EQUAL TO}": r"$\le$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\ge$", "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
}  # fmt: skip
_LATIN = 0x17F
"""The last letter that every LaTeX with `inputenc` can print."""

_PREAMBLE = r"""% Needs \usepackage{booktabs,graphicx} and \usepackage[table]{xcolor}.
\providecolor{xlingup}{HTML}{CFE3F5}%
\providecolor{xlingdowntwo}{HTML}{FBE3C4}%
\providecolor{xlingdownfive}{HTML}{EFA75A}%"""
CELL = {"up": "xlingup", "down2": "xlingdowntwo", "down5": "xlingdownfive"}
"""Class -> LaTeX colour."""


def shown(number: Number, digits: int = 2) -> str:
    """A number as printed, with an ASCII minus; a dash where there is none."""
    text = (printed.delta if number.is_delta else printed.score)(number.value, digits)
    return text or printed.DASH


def reasons(sheet: Sheet) -> tuple[str, ...]:
    """Each reason of the sheet once, in the order of its numbers."""
    found = (n.reason for line in sheet.lines for n in line.numbers if n.reason)
    return tuple(dict.fromkeys(found))


def heads(sheet: Sheet) -> tuple[str, ...]:
    """Heads of the columns of numbers."""
    return tuple(labels.ablation_column(name) for name in sheet.ablations)


def markdown(sheet: Sheet) -> str:
    """The table in Markdown: `**` marks a loss of 5 points or more, `*` one of 2 or more."""
    notes = reasons(sheet)
    columns = (*sheet.heads, *heads(sheet))
    rule = ["---"] * len(sheet.heads) + ["---:"] * len(sheet.ablations)
    rows = [
        [*map(plain, line.heads), *(_marked(number, notes) for number in line.numbers)]
        for line in sheet.lines
    ]
    table = [[plain(name) for name in columns], rule, *rows]
    text = [f"**{plain(sheet.title)}** (REF in percent, others as difference in points)", ""]
    text += ["| " + " | ".join(row) + " |" for row in table]
    text += ["", "**bold**: at least 5 points below REF; *italic*: at least 2."]
    text += [f"[{i}] {plain(reason)}" for i, reason in enumerate(notes, 1)]
    return "\n".join(text) + "\n"


def _marked(number: Number, notes: Sequence[str]) -> str:
    before, after = _MARKS.get(printed.colour(number.value) if number.is_delta else "", ("", ""))
    note = f" [{notes.index(number.reason) + 1}]" if number.reason else ""
    return f"{before}{shown(number)}{after}{note}"


def plain(text: str) -> str:
    """Text in a Markdown cell: nothing in it is markup."""
    flat = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\|*_`[]<>" else c for c in flat)


def latex(sheet: Sheet) -> str:
    """The table in LaTeX (booktabs), cells coloured by class."""
    notes = reasons(sheet)
    spec = "l" * len(sheet.heads) + "r" * len(sheet.ablations)
    rows: list[str] = []
    before = ""
    for line in sheet.lines:
        first = line.heads[0] if len(line.heads) > 1 else ""
        rows += [r"\midrule"] if rows and first != before else []
        own = [escaped(head) for head in line.heads]
        if first and first == before:
            own[0] = ""
        before = first
        numbers = [_coloured(number, notes) for number in line.numbers]
        rows.append(" & ".join([*own, *numbers]) + r" \\")
    head = " & ".join(map(escaped, (*sheet.heads, *heads(sheet)))) + r" \\"
    return tabular(sheet.title, spec, [head, r"\midrule", *rows], notes)


def tabular(
    title: str, spec: str, rows: Sequence[str], notes: Sequence[str], text: str = ""
) -> str:
    """A table in LaTeX (booktabs), for `input`; no wider than its line, no higher than its page.

    Args:
        title: For a comment.
        spec: Alignment of the columns.
        rows: Lines between the outer rules.
        notes: What stands below it, numbered from 1.
        text: What stands below those.
    """
    below = [rf"\textsuperscript{{{i}}} {escaped(note)}" for i, note in enumerate(notes, 1)]
    below += [escaped(text)] * bool(text)
    body = [
        _PREAMBLE,
        f"% {escaped(title)}",
        r"\resizebox*{!}{" + _at_most(r"\totalheight", r"0.9\textheight") + "}{%",
        r"\resizebox{" + _at_most(r"\width", r"\linewidth") + "}{!}{%",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}}}",
    ]
    # In a group: the rest of the document keeps its own size.
    body += [r"\par{\footnotesize", *(rf"{line}\par" for line in below), "}"] * bool(below)
    return "\n".join(body) + "\n"


def _at_most(size: str, most: str) -> str:
    """The size of what `resizebox` holds, or the most there is room for."""
    return rf"\ifdim{size}>{most}{most}\else{size}\fi"


def _coloured(number: Number, notes: Sequence[str]) -> str:
    text = shown(number).replace("-", "$-$").replace(printed.DASH, "--")
    mark = f"\\textsuperscript{{{notes.index(number.reason) + 1}}}" if number.reason else ""
    colour = CELL.get(printed.colour(number.value), "") if number.is_delta else ""
    return (rf"\cellcolor{{{colour}}}" if colour else "") + text + mark


def escaped(text: str) -> str:
    """Text in LaTeX: nothing in it is a command, and what no font has is named by its code."""
    return "".join(map(_escaped, " ".join(text.split())))


def _escaped(letter: str) -> str:
    if letter in _LATEX:
        return _LATEX[letter]
    if not letter.isprintable():
        return ""
    return letter if ord(letter) <= _LATIN else f"[U+{ord(letter):04X}]"


def csv(sheets: Sequence[Sheet]) -> str:
    """One row a number: fractions with all digits, n, sd, interval, trial ids, reason."""
    rows = [
        (
            *line.address,
            ablation,
            "delta" if number.is_delta else "score",
            number.value,
            number.sd if number.n > 1 else float("nan"),
            number.n,
            *number.interval,
            *number.both,
            " ".join(number.trials),
            " ".join(number.against),
            number.reason,
        )
        for sheet in sheets
        for line in sheet.lines
        for ablation, number in zip(sheet.ablations, line.numbers, strict=True)
    ]
    return to_csv(CSV_COLUMNS, rows)
