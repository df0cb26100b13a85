"""`--set grid.source='["en"]'`: one key of a study file, given on the command line."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sweep.complaints import StudyError

Table = dict[str, Any]
"""Parsed TOML."""


def override(texts: Sequence[str]) -> Table:
    """What all `--set` texts say together, as a study file would say it; the last one wins.

    A value is TOML (`4e-4`, `true`, `["en", "ru"]`); what is not TOML is a plain string, so that
    `--set encoder.model=../me5` needs no quotes.

    Raises:
        StudyError: a text is not of the form `key.key=value`.
    """
    given: Table = {}
    for text in texts:
        key, equals, value = text.partition("=")
        parts = [part.strip() for part in key.split(".")]
        if not equals or not all(parts):
            raise StudyError(
                f"--set {text}: not of the form key=value. Write --set seeds.report=[1]"
            )
        table = given
        for part in parts[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise StudyError(f"--set {text}: '{part}' was given a value before. Give only one.")
        table[parts[-1]] = _value(text, value.strip())
    return given


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Table:
    """Both tables as one; where both hold a key, `above` wins, and sub-tables are merged."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]  # `both` narrows
    return merged


def _value(text: str, value: str) -> Any:  # noqa: ANN401 - any TOML value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        if value[:1] in {"[", "{", '"', "'"}:  # meant as TOML, and broken
            raise StudyError(
                f"--set {text}: the value is not TOML. Quote it for the shell: "
                '--set \'grid.source=["en", "ru"]\''
            ) from None
        return value
