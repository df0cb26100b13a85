"""Ids that are a hash of what changes the result, and of nothing else (DESIGN §4).

Canonical JSON of what `trainables.identity` leaves of a spec: no names, locations and revisions, no
fields that hold their default, keys sorted. So an option added later leaves old ids as they are. A
*default* that changes its value would let old results answer for new trials: raise
`PROTOCOL_VERSION` with it. The golden ids in `tests/golden` notice when it is forgotten.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from trainables.identity import PARTS, identity, identity_items
from trainables.spec import DataRef, Request, TrialSpec

PROTOCOL_VERSION = 1
"""Raised whenever the same spec would give other numbers than before ("Numbers changed")."""

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
    return _digest_text(b"trial", _text(_written(spec)))


def both_ids(spec: TrialSpec) -> tuple[str, str]:
    """The trial id and the cell id, for the price of one."""
    written = _written(spec)
    kept = {name: text for name, text in written.items() if name not in CELL_APART}
    return _digest_text(b"trial", _text(written)), _digest_text(b"cell", _text(kept))


def cell_id(spec: TrialSpec) -> str:
    """The id of a cell: that of its trials, less hyper-parameters and seed.

    Returns:
        16 hexadecimal digits, never equal to a trial id.
    """
    return both_ids(spec)[1]


def search_id(spec: TrialSpec, searched: Collection[str], decides: Mapping[str, Any]) -> str:
    """The id of a search: its cell, the hyper-parameters that it does not search, and its rules.

    Args:
        spec: Any trial of the cell.
        searched: Names of the searched hyper-parameters; their values in `spec` play no part.
        decides: All else that decides which points are tried, as plain JSON.

    Returns:
        16 hexadecimal digits.
    """
    whole = identity(spec)
    fixed = {name: value for name, value in whole.get("hyper", {}).items() if name not in searched}
    cell = {name: value for name, value in whole.items() if name not in CELL_APART}
    content = {"v": PROTOCOL_VERSION, "cell": cell, "hyper": fixed, **decides}
    return _digest(b"search", content)


def seed_of(*names: object) -> int:
    """A seed that depends on names only; 32 bits."""
    text = CANONICAL.encode([str(name) for name in names])
    return int.from_bytes(blake2b(text.encode(), digest_size=4, person=b"xling-seed").digest())


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


def _labelled(refs: tuple[DataRef, ...]) -> list[list[Any]]:
    """Files as their rows name them, in an order of their own."""
    return sorted([ref.code, ref.language, ref.split, ref.layout, ref.key] for ref in refs)


def _written(spec: TrialSpec) -> dict[str, str]:
    """Each identity field of a spec as canonical JSON.

    Field by field, as a grid shares few encoders, files and settings among very many trials.
    """
    written = {
        name: _part(item) if type(item) in PARTS else CANONICAL.encode(item)
        for name, item in identity_items(spec)
    }
    written["v"] = str(PROTOCOL_VERSION)
    return written


@lru_cache(maxsize=4096)
def _part(part: object) -> str:
    return CANONICAL.encode(identity(part))


def _text(fields: Mapping[str, str]) -> str:
    """What `CANONICAL` would write of the whole."""
    return "{" + ",".join(f'"{name}":{fields[name]}' for name in sorted(fields)) + "}"


def _digest(kind: bytes, content: Mapping[str, Any]) -> str:
    return _digest_text(kind, CANONICAL.encode(content))


def _digest_text(kind: bytes, text: str) -> str:
    return blake2b(text.encode(), digest_size=8, person=b"xling-" + kind).hexdigest()
