"""How fetching reads: a line a file while it goes on, a table and JSON at the end."""

from collections.abc import Sequence
from typing import Any

from typer import echo

from sweep.fetch import Outcome


def tell(outcome: Outcome) -> None:
    """One line on stderr for a file that was worked on."""
    if outcome.status == "fetched":
        echo(f"fetched {outcome.wanted.path} ({outcome.size:,} bytes)", err=True)


def rows(outcomes: Sequence[Outcome]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """One row a file."""
    header = ["file", "status", "bytes", "from", "note"]
    return header, [
        [
            outcome.wanted.path,
            outcome.status,
            str(outcome.size) if outcome.size else "-",
            outcome.wanted.url,
            "" if outcome.is_fault else outcome.told,  # faults are told in full below the table
        ]
        for outcome in outcomes
    ]


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The same for scripts."""
    return [
        {
            "name": outcome.wanted.name,
            "split": outcome.wanted.split,
            "path": outcome.wanted.path,
            "url": outcome.wanted.url,
            "status": outcome.status,
            "bytes": outcome.size,
            "note": outcome.told,
        }
        for outcome in outcomes
    ]
