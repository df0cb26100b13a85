"""Where study files lie, and what stands in one: TOML, its relative paths made absolute."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sweep.complaints import StudyError, closest
from sweep.overrides import Table, merge
from trainables.registry import SHIPPED_DATA

FOLDER = Path(__file__).parent / "studies"
"""The studies that ship."""


def study_names() -> tuple[str, ...]:
    """Names of the studies that ship."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def read_study_file(name_or_path: str) -> tuple[Table, str]:
    """What stands in a study file, and how messages name the file.

    Args:
        name_or_path: A study that ships, or the path of a file.

    Raises:
        StudyError: there is no such study, or the file is not TOML.
    """
    path = _find(name_or_path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise StudyError(_syntax_error(path.name, str(error))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: cannot be read: {error}. Name a TOML file.") from None
    return anchored(table, path.parent), path.name


def study_text(name_or_path: str, overrides: Sequence[str] = ()) -> str:
    """A study file as it was written, with what was overridden below it, as comments.

    Raises:
        StudyError: there is no such study.
    """
    text = _find(name_or_path).read_text(encoding="utf-8")
    return "\n".join([text.rstrip(), *(f"# --set {given}" for given in overrides)]) + "\n"


def anchored(table: Table, folder: Path) -> Table:
    """The table with its relative paths made absolute, starting from `folder`."""
    found: Table = {}
    for section, key in (("data", "root"), ("encoder", "model"), (None, "storage")):
        inner = table.get(section, {}) if section else table
        value = inner.get(key) if isinstance(inner, Mapping) else None
        if not isinstance(value, str) or not value or "://" in value:
            continue
        if key == "model" and value[0] not in "./~":
            continue  # a hub id; a folder is written ./folder, as in a shell
        if key == "root" and value in SHIPPED_DATA:
            continue  # made by this package; a folder of that name is written ./toy
        anchored = {key: str((folder.resolve() / Path(value).expanduser()).resolve())}
        found |= {section: anchored} if section else anchored
    return merge(table, found)


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path).expanduser()
    if path.suffix == ".toml" or path.name != name_or_path:
        if not path.is_file():
            raise StudyError(f"{name_or_path}: no such study file. Check the path.")
        return path
    if name_or_path not in study_names():
        hint = closest(name_or_path, study_names())
        raise StudyError(
            f"no study '{name_or_path}' ships.{hint} Or give the path of a .toml file."
        )
    return FOLDER / f"{name_or_path}.toml"


def _syntax_error(file: str, message: str) -> str:
    """`file:line: what`, from tomllib's `what (at line 3, column 5)`."""
    found = re.search(r"(.*) \(at line (\d+), column (\d+)\)", message)
    if found is None:
        return f"{file}: not TOML: {message}. Mend the file's last line."
    what, line, column = found.groups()
    return f"{file}:{line}: not TOML: {what} (column {column}). Mend this line."
