"""Ids that are a hash of what changes the result, and of nothing else (DESIGN §4).

Canonical JSON of the identity fields of `trainables.spec`: names, locations and revisions are left
out, keys are sorted, fields that hold their default are omitted. So an option added later leaves
old ids as they are. A *default* that changes its value would let old results answer for new
trials: raise `PROTOCOL_VERSION` with it. The golden ids in `tests/golden` notice when it is
forgotten.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from trainables.spec import (
    DataRef,
    EncoderRef,
    HyperParameters,
    Request,
    TrialOptions,
    TrialSpec,
)

PROTOCOL_VERSION = 1
"""Raised whenever the same spec would give other numbers than before ("Numbers changed")."""

NOT_IDENTITY: Mapping[type, frozenset[str]] = {
    EncoderRef: frozenset({"name", "location", "revision", "n_layers"}),
    DataRef: frozenset({"code", "language", "split", "location"}),
}
"""Fields that say what a thing is called or where it lies; the fingerprints say what it is."""

PARTS: frozenset[type] = frozenset({EncoderRef, DataRef, HyperParameters, TrialOptions})
"""Values that a spec is made of."""

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
"""One text for one content: keys in order, no blanks, ASCII, no NaN."""

CELL_APART = frozenset({"hyper", "seed"})
"""What differs between the trials of one cell."""


def trial_id(spec: TrialSpec) -> str:
    """The id of a fine-tuning run: equal specs, whatever they are called, have equal ids.

    Returns:
        16 hexadecimal digits.

    Raises:
        ValueError: a hyper-parameter is not a finite number.
    """
    return _digest(b"trial", {"v": PROTOCOL_VERSION, **identity(spec)})


def cell_id(spec: TrialSpec) -> str:
    """The id of a cell: that of its trials, less hyper-parameters and seed.

    Returns:
        16 hexadecimal digits, never equal to a trial id.
    """
    kept = {name: value for name, value in identity(spec).items() if name not in CELL_APART}
    return _digest(b"cell", {"v": PROTOCOL_VERSION, **kept})


def request_hash(request: Request) -> str:
    """The id of what is measured on a trial, whatever the order in which it is asked for.

    Locations are left out; treebank codes and languages stay, since they label the rows.

    Returns:
        16 hexadecimal digits.
    """
    asked: dict[str, Any] = {"targets": _labelled(request.targets), "keep": request.keep}
    if request.similarity is not None:
        wanted = request.similarity
        asked["similarity"] = {
            **identity(replace(wanted, parallel=(), pivots=(), measures=())),
            "parallel": _labelled(wanted.parallel),
            "pivots": sorted(wanted.pivots),
            "measures": sorted(wanted.measures),
        }
    return _digest(b"request", asked)


def identity(value: object) -> dict[str, Any]:
    """The identity fields of a frozen dataclass that differ from their defaults, as plain JSON."""
    return dict(_identity_items(value))


def _identity_items(value: object) -> Iterator[tuple[str, Any]]:
    kind: Any = type(value)
    for name, default, is_float in _identity_fields(kind):
        item = getattr(value, name)
        if item == default:
            continue
        if type(item) in PARTS:
            item = _identity_of_part(item)
        elif is_float:
            item = float(item)  # 1 and 1.0 are one learning rate
        yield name, item


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


def _labelled(refs: tuple[DataRef, ...]) -> list[list[Any]]:
    """Files as their rows name them, in an order of their own."""
    return sorted([ref.code, ref.language, ref.split, ref.layout, ref.key] for ref in refs)


def _digest(kind: bytes, content: Mapping[str, Any]) -> str:
    text = CANONICAL.encode(content)
    return blake2b(text.encode(), digest_size=8, person=b"xling-" + kind).hexdigest()
