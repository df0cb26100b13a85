"""Protocols: what a paper's experiments take for granted, laid below a study file.

A protocol is a study file that only holds defaults (`sweep/protocols/first-align.toml`). Its
`[tasks.upos]` says what differs between tasks. A study's own general section (`[hyper]`) beats the
protocol's section of the task, and the study's own `[tasks.upos.hyper]` beats both.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweep.complaints import closest, wrong_value
from sweep.overrides import Table, merge

FOLDER = Path(__file__).parent / "protocols"

PER_TASK: Mapping[str, tuple[str, ...]] = {
    "sources": ("data", "sources"),
    "dev": ("data", "dev"),
    "naming": ("evaluate", "naming"),
    "targets": ("evaluate", "targets"),
    "hyper": ("hyper",),
    "options": ("options",),
}
"""Key of `[tasks.x]` -> where a study file says the same for all tasks."""


def protocol_names() -> tuple[str, ...]:
    """Names of the protocols that ship."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def read_protocol(file: str, name: object) -> Table:
    """The defaults of one protocol.

    Args:
        file: The study file that asks, for the message.
        name: What it asks for.

    Raises:
        ValueError: there is no such protocol.
    """
    if name not in protocol_names():
        what = f"unknown protocol.{closest(str(name), protocol_names())}"
        raise ValueError(wrong_value(file, "protocol", name, what))
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def laid_below(protocol: Mapping[str, Any], study: Mapping[str, Any]) -> Table:
    """The study, with the protocol's values wherever it says nothing itself."""
    merged = merge(protocol, study)
    general = _general(study)
    ours, theirs = study.get("tasks", {}), protocol.get("tasks", {})
    merged["tasks"] = {
        task: merge(merge(theirs.get(task, {}), general), ours.get(task, {}))
        for task in {**theirs, **ours}
    }
    return merged


def _general(study: Mapping[str, Any]) -> Table:
    """What the study says for all tasks, as a `[tasks.x]` would say it."""
    found: Table = {}
    for key, place in PER_TASK.items():
        value: Any = study
        for part in place:
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            found[key] = value
    return found
