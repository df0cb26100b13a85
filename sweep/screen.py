"""How a plan and a status read: rich tables on a terminal, tab-separated lines off it."""

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typer import echo, style

from sweep.check import DataCheck
from sweep.grid import PROBE
from sweep.ledger import Failure
from sweep.opened import Opened
from sweep.plan import Plan, by_cell

if TYPE_CHECKING:
    from sweep.run import RunSummary

Rows = Sequence[Sequence[str]]

_COUNTED = "Counted from the study file alone: no data, encoder or store was looked at."


def show(header: Sequence[str], rows: Rows) -> None:
    """Print a table on stdout, as fits who reads it."""
    if not sys.stdout.isatty():
        for row in (header, *rows):
            echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in header:
        table.add_column(name, overflow="fold")  # a path is broken, never cut
    for row in rows:
        table.add_row(*map(Text, row))  # names are shown as they are, not read as markup
    Console().print(table)


def complain(text: str) -> None:
    """Tell of an error on stderr; a terminal gets its lines broken between words."""
    if not sys.stderr.isatty():
        echo(f"error: {text}", err=True)
        return
    first, *rest = text.splitlines() or [""]
    word = style("error:", fg="red", bold=True) if "NO_COLOR" not in os.environ else "error:"
    head = _broken(f"error: {first}", "  ")
    echo("\n".join([head[0].replace("error:", word, 1), *head[1:]]), err=True)
    for line in rest:
        for part in _broken(line, f"{' ' * (len(line) - len(line.lstrip()))}  "):
            echo(part, err=True)


def _broken(line: str, indent: str) -> list[str]:
    """A line as the terminal's width breaks it, between words only: paths stay whole."""
    width = max(20, shutil.get_terminal_size((80, 24)).columns)
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


@contextmanager
def busy() -> Iterator[Callable[[str], None]]:
    """While something takes seconds, say on a terminal's stderr what; elsewhere say nothing."""
    if not sys.stderr.isatty():
        yield lambda _what: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda what: status.update(f"looking at {what}")


def plan_rows(plan: Plan) -> tuple[Sequence[str], Rows]:
    """One row a task and ablation, one column a source: `2 of 3 left`."""
    return _grid(by_cell(plan), _left)


def status_rows(plan: Plan, failed: Mapping[str, Failure]) -> tuple[Sequence[str], Rows]:
    """One row a task and ablation, one column a source: `2/3 done, 1 failed`."""
    cells = by_cell(plan)
    for left in plan.left:
        if left.trial.trial_id in failed:
            spec = left.trial.spec
            cells[spec.task, spec.source, spec.ablation]["failed"] += 1
    return _grid(cells, _done)


def data_rows(check: DataCheck) -> tuple[Sequence[str], Rows]:
    """One row a file."""
    header = ["treebank", "split", "sentences", "words", "for"]
    return header, [
        [
            file.code,
            file.split,
            "-" if file.fault else str(file.n_sentences),
            "-" if file.fault else str(file.n_words),
            ", ".join(file.purposes),
        ]
        for file in check.files
    ]


def plan_lines(plan: Plan) -> list[str]:
    """What is to be done, what it costs, and what the study will not show."""
    counts = plan.counts
    head = (
        f"{plan.study}: {_count(plan.n_cells, 'cell')}, {_count(len(plan.trials), 'trial')}: "
        f"{counts['train']} to train, {counts['measure']} only to measure, {counts['done']} done."
    )
    lines = [head]
    if plan.n_searching:
        text = f"{_count(plan.n_searching, 'trial')} of these only search"
        wait = f"; {plan.n_open} wait for what others find" if plan.n_open else ""
        lines.append(f"{text}{wait}.")
    if plan.n_again:
        lines.append(
            f"{_count(plan.n_again, 'trial')} of these {_was(plan.n_again)} trained before without "
            'keeping the weights; keep = "best" would have spared that.'
        )
    lines += [_price(plan)] if plan.left else []
    lines += [f"Store: {plan.store}" if plan.store else _COUNTED]
    return lines + [f"Note: {note}" for note in plan.notes]


def status_lines(plan: Plan, failed: Mapping[str, Failure]) -> list[str]:
    """How much is done, and why the rest is not."""
    n_failed = sum(left.trial.trial_id in failed for left in plan.left)
    ends = Counter(left.trial.ended for left in plan.trials)
    n_done = plan.counts["done"] - ends["pruned"] - ends["failed"]
    head = (
        f"{plan.study}: {n_done} of {len(plan.trials)} trials done, "
        f"{n_failed} failed, {len(plan.left) - n_failed} not run yet."
    )
    lines = [head]
    if ends["pruned"] or ends["failed"]:
        lines.append(
            f"Searching: {_count(ends['pruned'], 'trial')} stopped early, "
            f"{ends['failed']} that cannot be trained; neither enters a mean."
        )
    for left in plan.trials:
        is_void = left.trial.ended == "failed"
        failure = failed.get(left.trial.trial_id)
        if failure is not None and (is_void or left.work != "done"):
            spec = left.trial.spec
            reason = failure.message.strip().splitlines()
            what = f"{spec.task} {spec.source} {spec.ablation} seed {spec.seed}"
            lines.append(
                f"{'Cannot be trained' if is_void else 'Failed'}: {failure.trial_id} ({what}), "
                f"{failure.kind}, attempt {failure.attempt} on {failure.host}: "
                f"{reason[0] if reason else 'no message'}"
            )
    return [*lines, f"Store: {plan.store}"]


def run_lines(summary: "RunSummary") -> list[str]:
    """What a run did, and what to do about what it did not."""
    head = (
        f"{summary.study}: {summary.already + summary.done} of {summary.total} trials done "
        f"({summary.done} in this run, {duration(summary.seconds)})."
    )
    lines = [head]
    if summary.pruned:
        lines.append(f"Stopped early: {_count(summary.pruned, 'trial')} of searches.")
    if summary.void:
        lines.append(
            f"Cannot be trained: {_count(summary.void, 'point')} of searches, which went on. "
            f"Why: sweep status {summary.study}."
        )
    if summary.failed:
        kinds = ", ".join(f"{count} {kind}" for kind, count in summary.failed.items())
        lines.append(
            f"Failed: {kinds}. Why: sweep status {summary.study}; the same command retries."
        )
    if summary.left:
        lines.append(f"Left: {_count(summary.left, 'trial')}. The same command goes on.")
    if summary.untracked:
        lines.append(f"Not in MLflow yet: {_count(summary.untracked, 'trial')}. Use sweep track.")
    return [*lines, f"Store: {summary.store}"]


def status_json(opened: Opened, plan: Plan, failed: Mapping[str, Failure]) -> dict[str, object]:
    """The status for scripts."""
    specs = {trial.trial_id: trial.spec for trial in opened.trials if not trial.is_open}
    return {
        "study": plan.study,
        "store": plan.store,
        "trials": len(plan.trials),
        "done": plan.counts["done"],
        "left": len(plan.left),
        "cells": [
            {"task": task, "source": source, "ablation": ablation, **_numbers(counts)}
            for (task, source, ablation), counts in by_cell(plan).items()
        ],
        "failed": [
            {
                "trial_id": failure.trial_id,
                "job_id": failure.job_id,
                "kind": failure.kind,
                "message": failure.message,
                "attempt": failure.attempt,
                "host": failure.host,
                "task": specs[failure.trial_id].task,
                "source": specs[failure.trial_id].source,
                "ablation": specs[failure.trial_id].ablation,
                "seed": specs[failure.trial_id].seed,
            }
            for failure in failed.values()
        ],
    }


def duration(seconds: float) -> str:
    """A duration as one reads it: `45 s`, `12 min`, `3.4 h`."""
    minute, hour = 60, 3600
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    if seconds < 2 * hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.1f} h"


def _grid(
    cells: Mapping[tuple[str, str, str], Counter[str]],
    words: Callable[[Counter[str]], str],
) -> tuple[Sequence[str], Rows]:
    sources = list(dict.fromkeys(source for _, source, _ in cells if source))
    rows = []
    for task, ablation in dict.fromkeys((task, ablation) for task, _, ablation in cells):
        if task == PROBE:
            rows.append(
                ["", "pretrained", *[""] * (len(sources) - 1), words(cells[task, "", ablation])]
            )
            continue
        rows.append([task, ablation, *(words(cells[task, source, ablation]) for source in sources)])
    return ["task", "ablation", *sources], rows


def _left(counts: Counter[str]) -> str:
    total, left = _total(counts), counts["train"] + counts["measure"]
    own = f"{left} of {total} left" if left else f"{total} done"
    searching, n = counts["search left"], _searched(counts)
    return f"search {searching} of {n} left, {own}" if searching else own


def _done(counts: Counter[str]) -> str:
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    own = f"{counts['done']}/{_total(counts)} done{failed}"
    n = _searched(counts)
    if not n:
        return own
    ended = f"search {n - counts['search left']}/{n}"
    lost = [f"{counts[f'search {end}']} {end}" for end in ("pruned", "failed")]
    lost = [text for text in lost if not text.startswith("0 ")]
    told = f" ({', '.join(lost)})" if lost else ""
    return f"{ended}{told}, {own}"


def _searched(counts: Counter[str]) -> int:
    """Trials of a cell's search."""
    return sum(n for name, n in counts.items() if name.startswith("search "))


def _total(counts: Counter[str]) -> int:
    return counts["train"] + counts["measure"] + counts["done"]


def _numbers(counts: Counter[str]) -> dict[str, object]:
    numbers: dict[str, object] = {work: counts[work] for work in ("train", "measure", "done")}
    if _searched(counts):
        ends = ("left", "done", "pruned", "failed")
        numbers["search"] = {end: counts[f"search {end}"] for end in ends}
    return numbers


def _price(plan: Plan) -> str:
    n_priced = len(plan.left) - plan.n_unpriced
    if not n_priced:
        return "Cost: unknown until a trial of this kind has run on as many threads."
    known = f"Cost: about {duration(plan.seconds)} of trial time, one trial after the other"
    if plan.n_unpriced:
        return f"{known}, and {_count(plan.n_unpriced, 'trial')} of unknown cost."
    return f"{known}; divide by the trials that run at once."


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _was(n: int) -> str:
    return "was" if n == 1 else "were"
