"""What a check found, and how sizes read."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination.

    Attributes:
        topic: What was looked at.
        status: `ok`; `warn`: works, but slower or with less; `fail`: a run would not work.
        found: What was seen.
        mend: What to do about it; empty when ok.
    """

    topic: str
    status: Status
    found: str
    mend: str = ""


def size(n_bytes: float) -> str:
    """Bytes as one reads them: `3.4 GB`, `120 MB`."""
    giga, mega = 1e9, 1e6
    return f"{n_bytes / giga:.1f} GB" if n_bytes >= giga else f"{n_bytes / mega:.0f} MB"
