"""What to tell a researcher whose study file is wrong: file, key, value, and how to mend it."""

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any


class StudyError(Exception):
    """A study is wrong: says file, key, value, and how to mend it."""


def unknown_key(file: str, key: str, known: Iterable[str], homes: Sequence[str] = ()) -> str:
    """The complaint about a key that no section holds, with the closest one that it does.

    Args:
        file: The study file.
        key: The whole key, e.g. `grid.ablatoin`.
        known: Keys of that section.
        homes: Where such a key belongs, if elsewhere.
    """
    if homes:
        return f"{file}: {key}: unknown key here. Did you mean {' or '.join(homes)}?"
    section, _, name = key.rpartition(".")
    return f"{file}: {key}: unknown key.{closest(name, known)}" + (
        "" if section else " (A key below a [section] belongs to that section.)"
    )


def closest(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'? Known: ...`, to be put behind a sentence; empty where none is known."""
    known = list(known)
    if not known:
        return ""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return f"{hint} Known: {', '.join(known)}."


def wrong_value(file: str, key: str, value: object, what: str) -> str:
    """The complaint about one value: `zero-shot.toml: grid.task = "x": what`."""
    return f"{file}: {key} = {shown(value)}: {what}"


def shown(value: object) -> str:
    """A value as a study file writes it, cut to what fits on a line."""
    longest = 80
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:  # dates are TOML, but not JSON
        text = str(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def dotted(place: Sequence[str | int]) -> str:
    """A key as a study file names it: `("seeds", "report", 0)` is `seeds.report[0]`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def looked_up(data: Any, place: Sequence[str | int]) -> Any:  # noqa: ANN401 - parsed TOML
    """The value at a place of parsed TOML; None where there is none."""
    for part in place:
        if isinstance(data, dict):
            data = data.get(str(part))
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:  # one string stands for a list of one
            break
    return data
