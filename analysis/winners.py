"""What searches found: the winner of each on source dev, and what an oracle would have taken.

The oracle sees the other languages. It chooses nothing: it says what choosing on the source cost.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from analysis import labels, printed
from analysis.figures.style import to_csv
from analysis.formats import escaped, plain

SEARCHED = pa.schema(
    [
        pa.field("search", pa.string(), nullable=False),  # its id
        pa.field("method", pa.string(), nullable=False),
        pa.field("scope", pa.string(), nullable=False),  # cell | ref: who takes the winner
        pa.field("task", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("ablation", pa.string(), nullable=False),
        pa.field("order", pa.int32(), nullable=False),  # of the point in its search, from 1
        pa.field("trial_id", pa.string(), nullable=False),
        pa.field("point", pa.string(), nullable=False),  # JSON: hyper-parameter -> value
        pa.field("state", pa.string(), nullable=False),  # done | pruned | failed | missing
        pa.field("metric", pa.string(), nullable=False),  # of source dev
        pa.field("dev", pa.float64(), nullable=False),  # best epoch; NaN where there is none
        pa.field("epochs", pa.int32(), nullable=False),  # that were trained
        pa.field("is_winner", pa.bool_(), nullable=False),
    ]
)
"""Every point that was asked for."""


@dataclass(frozen=True, slots=True)
class Winner:
    """What one search found.

    Attributes:
        task: Task.
        source: Source language.
        ablation: Ablation of the searched cell.
        scope: Whether all ablations take its winner (`ref`) or this cell alone (`cell`).
        method: How points were chosen.
        counts: State -> number of points; a point asked for twice counts twice.
        n: Points asked for.
        point: The winner; empty while there is none.
        trial_id: Its trial.
        metric: Of the scores.
        dev: Its score on source dev.
        others: Its mean score on the other languages; NaN where they were not measured.
        oracle: The point with the best such mean.
        oracle_others: That mean.
        sets: What the oracle was tested on: split -> number of files.
    """

    task: str
    source: str
    ablation: str
    scope: str
    method: str
    counts: Mapping[str, int]
    n: int
    point: str
    trial_id: str
    metric: str
    dev: float
    others: float
    oracle: str
    oracle_others: float
    sets: Mapping[str, int]


def winners(searched: pa.Table, scores: pa.Table) -> tuple[Winner, ...]:
    """The winner of each search.

    Args:
        searched: Rows of `SEARCHED`.
        scores: Rows of `schema.SCORES` of their trials.
    """
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in searched.to_pylist():
        groups[row["search"]].append(row)
    others = transfer(searched, scores)
    return tuple(_winner(rows, others) for rows in groups.values())


@dataclass(frozen=True, slots=True)
class Transfer:
    """How well a trial does in the other languages: the mean, and the files behind it."""

    mean: float
    sets: Mapping[str, int]


def transfer(searched: pa.Table, scores: pa.Table) -> dict[str, Transfer]:
    """Mean score of each trial on the other languages, by the metric of source dev.

    Trials of one search are compared on the same files: one that lacks some has no mean.
    """
    about = {row["trial_id"]: row for row in searched.to_pylist()}
    found: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    columns = ("trial_id", "split", "language", "data_key", "metric", "value")
    for row in scores.select(list(columns)).to_pylist():
        own = about.get(row["trial_id"])
        if own is None or row["language"] == own["source"] or row["metric"] != own["metric"]:
            continue
        found[row["trial_id"]][row["split"], row["data_key"]] = row["value"]
    wanted: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for trial, values in found.items():
        wanted[about[trial]["search"]] |= values.keys()
    return {
        trial: Transfer(sum(values.values()) / len(values), Counter(split for split, _ in values))
        for trial, values in found.items()
        if values.keys() == wanted[about[trial]["search"]]
    }


def _winner(rows: Sequence[Mapping[str, object]], others: Mapping[str, Transfer]) -> Winner:
    first = rows[0]
    won = next((row for row in rows if row["is_winner"]), None)
    whole = [row for row in rows if row["state"] == "done" and row["trial_id"] in others]
    best = max(whole, key=lambda row: others[str(row["trial_id"])].mean, default=None)
    nothing = Transfer(math.nan, {})
    of_winner = others.get(str(won["trial_id"]), nothing) if won else nothing
    of_best = others[str(best["trial_id"])] if best else nothing
    return Winner(
        task=str(first["task"]),
        source=str(first["source"]),
        ablation=str(first["ablation"]),
        scope=str(first["scope"]),
        method=str(first["method"]),
        counts=Counter(str(row["state"]) for row in rows),
        n=len(rows),
        point=str(won["point"]) if won else "",
        trial_id=str(won["trial_id"]) if won else "",
        metric=next((str(row["metric"]) for row in rows if row["metric"]), ""),
        dev=float(str(won["dev"])) if won else math.nan,
        others=of_winner.mean,
        oracle=str(best["point"]) if best else "",
        oracle_others=of_best.mean,
        sets=of_best.sets,
    )


HEADS = (
    "Task", "Source", "Ablation", "Tried", "Winner", "Source dev", "Others", "Oracle's choice",
    "Its others", "Cost",
)  # fmt: skip
"""Columns of the table: `Others` is the mean over the other languages, `Cost` what the oracle has
more."""


def lines(found: Sequence[Winner]) -> Iterator[tuple[str, ...]]:
    """The table's rows as text: scores in percent, the cost in points."""
    for winner in found:
        everyone = ", for all ablations" if winner.scope == "ref" else ""
        yield (
            f"{labels.task(winner.task)} ({labels.metric(winner.metric)})",
            labels.language(winner.source),
            winner.ablation + everyone,
            tried_text(winner),
            point_text(winner.point) or "none yet",
            printed.score(winner.dev) or printed.DASH,
            printed.score(winner.others) or printed.DASH,
            point_text(winner.oracle) or printed.DASH,
            printed.score(winner.oracle_others) or printed.DASH,
            printed.score(winner.oracle_others - winner.others) or printed.DASH,
        )


def tried_text(winner: Winner) -> str:
    """`8 by tpe: 5 done, 3 pruned`."""
    parts = [f"{n} {state}" for state, n in sorted(winner.counts.items())]
    return f"{winner.n} by {winner.method}: {', '.join(parts)}"


def point_text(point: str) -> str:
    """A point as people say it."""
    content = json.loads(point or "{}")
    return ", ".join(f"{name} {value}" for name, value in content.items())


def note(found: Sequence[Winner]) -> str:
    """What the oracle's columns are, in one sentence."""
    sets: Counter[str] = Counter()
    for winner in found:
        sets.update(winner.sets)
    if not sets:
        return "The other languages were not measured in the search, so there is no oracle."
    return (
        "Winners are chosen on source dev. The oracle takes the best mean over the other "
        f"languages ({', '.join(f'{n} {split} files' for split, n in sorted(sets.items()))} in "
        "all searches together); it chooses nothing, and says what choosing on the source cost. "
        "Seed of the search alone, so a point may be chance."
    )


def markdown(found: Sequence[Winner]) -> str:
    """The table in Markdown."""
    rows = [[plain(cell) for cell in line] for line in lines(found)]
    table = [list(HEADS), ["---"] * 5 + ["---:"] * 2 + ["---"] + ["---:"] * 2, *rows]
    text = ["**Hyper-parameters that were found** (scores in percent, cost in points)", ""]
    text += ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([*text, "", note(found)]) + "\n"


def latex(found: Sequence[Winner]) -> str:
    """The table in LaTeX (booktabs)."""
    rows = [" & ".join(escaped(cell) for cell in line) + r" \\" for line in lines(found)]
    body = [
        r"% Needs \usepackage{booktabs}. Hyper-parameters that were found.",
        r"\begin{tabular}{lllllrrlrr}",
        r"\toprule",
        " & ".join(map(escaped, HEADS)) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\par\footnotesize {escaped(note(found))}",
    ]
    return "\n".join(body).replace(printed.DASH, "--") + "\n"


def csv(searched: pa.Table, scores: pa.Table) -> str:
    """Every point that was tried, one a row; fractions with all their digits."""
    others = transfer(searched, scores)
    rows = [
        (*row.values(), others[row["trial_id"]].mean if row["trial_id"] in others else math.nan)
        for row in searched.to_pylist()
    ]
    return to_csv((*SEARCHED.names, "others"), rows)
