"""What the shell offers at the Tab key: studies that ship or lie here, and trials of the store."""

from collections.abc import Iterator
from pathlib import Path

import typer

MOST = 200
"""Trials offered at once; more letters narrow them down."""


def complete_study(incomplete: str) -> list[str]:
    """Names of the studies that ship, and study files and folders below what was typed."""
    from sweep.studyfile import study_names

    names = [name for name in study_names() if name.startswith(incomplete)]
    return [*names, *_files(incomplete)]


def complete_trial(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of the store that the command line names so far; none where it cannot be read."""
    from analysis.layout import Folder
    from sweep.onetrial import known_ids
    from sweep.opened import store_of
    from sweep.study import load_study

    study, storage = ctx.params.get("study"), ctx.params.get("storage")
    try:
        store = store_of(load_study(study), storage) if study else storage or "results"
        ids = known_ids(Folder(store))
    except Exception:  # noqa: BLE001 - a shell that waits for words must not get a traceback
        return []
    return sorted(i for i in ids if i.startswith(incomplete))[:MOST]


def _files(incomplete: str) -> Iterator[str]:
    """Study files and folders that begin like this, as the shell wants them written."""
    head, slash, name = incomplete.rpartition("/")
    folder = Path(f"{head}{slash}" or ".").expanduser()
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(name) or (path.name.startswith(".") and not name):
            continue
        if path.suffix == ".toml" and path.name != "pyproject.toml":
            yield f"{head}{slash}{path.name}"
        elif path.is_dir() and (head or name):
            yield f"{head}{slash}{path.name}/"
