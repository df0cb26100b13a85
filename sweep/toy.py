"""`sweep toy`: the invented languages as files, and how far each lies from the source; no torch."""

from collections.abc import Sequence
from pathlib import Path

from sweep.complaints import StudyError
from trainables.toy.corpus import MANIFEST, write_toy
from trainables.toy.languages import LANGUAGES, SOURCE, distances

HEADER = ("code", "name", "verb", "adpositions", "adjectives", "script", "affixes", "order")
"""What `language_rows` shows of each language; then its distance from the source, part by part."""


def write_languages(folder: str) -> Path:
    """Write the files below a folder that is new, empty, or holds an older version of them.

    Raises:
        StudyError: there is something else in it, or it cannot be written.
    """
    path = Path(folder).expanduser().absolute()
    try:
        if path.exists() and not (path / MANIFEST).is_file() and any(path.iterdir()):
            raise StudyError(f"{folder}: there is something else in it. Name a new folder.")
        return write_toy(path)
    except OSError as error:
        raise StudyError(f"{folder}: cannot be written: {error}. Name another folder.") from None


def language_rows() -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """One row a language: what it is made of, and the parts of its distance from the source."""
    header = (*HEADER, "lexicon", "script differs", "affixes differ", "distance")
    rows = []
    for code, far in distances(SOURCE).items():
        language = LANGUAGES[code]
        made = (language.verb, language.adposition, language.adjective, language.script)
        parts = (far.order, far.lexicon, far.script, far.affixes, far.total)
        rows.append(
            (code, language.name, *made, language.affixes, *(f"{part:.2f}" for part in parts))
        )
    return header, rows
