"""What of a spec is identity: all that changes a result, and nothing else.

Trial ids (`sweep.identity`) and the marks of checkpoints are hashes of it, so that the files of a
trial are its own under every id that it can have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache, lru_cache
from typing import Any

from trainables.spec import DataRef, EncoderRef, HyperParameters, TrialOptions

NOT_IDENTITY: Mapping[type, frozenset[str]] = {
    EncoderRef: frozenset({"name", "location", "revision", "n_layers"}),
    DataRef: frozenset({"code", "language", "split", "location"}),
}
"""Fields that say what a thing is called or where it lies; the fingerprints say what it is."""

PARTS: frozenset[type] = frozenset({EncoderRef, DataRef, HyperParameters, TrialOptions})
"""Values that a spec is made of."""


def identity(value: object) -> dict[str, Any]:
    """The identity fields of a frozen dataclass that differ from their defaults, as plain JSON."""
    return {
        name: _identity_of_part(item) if type(item) in PARTS else item
        for name, item in identity_items(value)
    }


def identity_items(value: object) -> Iterator[tuple[str, Any]]:
    """The same field by field, with the parts of a spec left as they are."""
    kind: Any = type(value)
    for name, default, is_float in _identity_fields(kind):
        item = getattr(value, name)
        if item == default:
            continue
        yield name, float(item) if is_float else item  # 1 and 1.0 are one learning rate


@lru_cache(maxsize=4096)
def _identity_of_part(part: object) -> dict[str, Any]:
    """As `identity`; a grid shares few encoders, files and settings among many specs."""
    return identity(part)


@cache
def _identity_fields(kind: type) -> tuple[tuple[str, Any, bool], ...]:
    """Name, default (`MISSING` for none) and whether it is a float, of each identity field."""
    found = []
    for field in fields(kind):
        if field.name in NOT_IDENTITY.get(kind, frozenset()):
            continue
        make = field.default_factory
        default = field.default if make is MISSING else make()
        found.append((field.name, default, field.type is float))
    return tuple(found)
