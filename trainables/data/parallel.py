"""Translations of the same sentences, brought into one order by their ids (decision D-02).

The PUD treebanks mark a sentence by `# sent_id`, in the same order but for Icelandic. Polish up to
release 2.8 counts s1, s2, ... and keeps the common id in `# orig_file_sentence = n01001011#1`.
Galician of release 2.16 has five wrong ids: four that nobody else has, and one (`n01086031`) that
belongs to the sentence before. So an id alone is not proof: where a file with broken ids keeps to
the common order, an id out of its place is taken for broken too.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainables.data.sentence import DataError, Sentence

_SHOWN = 5
"""Ids spelled out in a message."""

_IN_PLACE = 0.9
"""Share of ids at the same place from which two files are said to be in the same order. PUD: 0.995
for Galician, 0.5 for Icelandic, whose ids are right."""


@dataclass(frozen=True, slots=True)
class _Keys:
    """One way to name the sentences of a file; `names[i]` names sentence i."""

    language: str
    path: str
    comment: str
    names: tuple[str, ...]
    lines: tuple[int, ...]


def align(
    files: Mapping[str, tuple[str, Sequence[Sentence]]],
    unmatched: Literal["refuse", "drop"] = "refuse",
) -> Mapping[str, list[int]]:
    """Say which sentences of each file are translations of each other.

    Args:
        files: Path (for messages) and sentences of each language.
        unmatched: What to do about sentences that some language lacks: `refuse` the files, or
            `drop` the sentences.

    Returns:
        For each language the indices of its sentences in the common order, which is that of the
        ids: position k is the same sentence everywhere, whichever languages take part and however
        they are ordered.

    Raises:
        DataError: ids are missing or stand twice, the files do not hold the same sentences, or
            (for `drop`) no sentence is left.
    """
    if not files:
        return {}
    ways = {language: _ways(language, *file) for language, file in files.items()}
    common = _common_names(ways)
    keys = {language: max(way, key=lambda w: _overlap(w, common)) for language, way in ways.items()}
    for chosen in keys.values():
        _check_unique(chosen)
    doubtful = {language: _doubtful(chosen, common) for language, chosen in keys.items()}
    kept = set.intersection(*(set(keys[name].names) - doubtful[name] for name in keys))
    everything = set.union(*(set(chosen.names) for chosen in keys.values()))
    if kept != everything and (unmatched == "refuse" or not kept):
        raise _refusal(keys, doubtful, common, kept)
    order = sorted(kept)
    found = {}
    for language, chosen in keys.items():
        index = {name: i for i, name in enumerate(chosen.names)}
        found[language] = [index[name] for name in order]
    return found


def _ways(language: str, path: str, sentences: Sequence[Sentence]) -> list[_Keys]:
    """Every complete way to name the sentences of one file, the usual one first."""
    if not sentences:
        raise DataError(path, None, f"no sentences for '{language}'", "Fetch the file again.")
    lines = tuple(sentence.line for sentence in sentences)
    original = [sentence.orig_id for sentence in sentences]
    ways = [
        _Keys(language, path, comment, tuple(names), lines)
        for comment, names in (
            ("sent_id", [sentence.sent_id for sentence in sentences]),
            ("orig_file_sentence", original),
            ("orig_file_sentence", [re.sub(r"#[0-9]+$", "", name) for name in original]),
        )
        if all(names)
    ]
    if not ways:
        line = next(sentence.line for sentence in sentences if not sentence.sent_id)
        what = f"a sentence of '{language}' without `# sent_id`, so it has no known translation"
        mend = "Give every sentence of every parallel file a `# sent_id` that is the same in all."
        raise DataError(path, line, what, mend)
    return ways


def _common_names(ways: Mapping[str, Sequence[_Keys]]) -> tuple[str, ...]:
    """The names that most languages agree on, in the order of the first that has them.

    Of equally popular sets the one that most sentences of others are in; then the first.
    """
    votes = Counter(
        names
        for of_language in ways.values()
        for names in {frozenset(w.names) for w in of_language}
    )
    candidates = [way for of_language in ways.values() for way in of_language]

    def popularity(way: _Keys) -> tuple[int, int]:
        shared = sum(max(_overlap(w, way.names) for w in others) for others in ways.values())
        return votes[frozenset(way.names)], shared

    return max(candidates, key=popularity).names


def _overlap(keys: _Keys, names: Sequence[str]) -> int:
    return len(set(keys.names).intersection(names))


def _check_unique(keys: _Keys) -> None:
    first: dict[str, int] = {}
    for name, line in zip(keys.names, keys.lines, strict=True):
        if name in first:
            what = f"{keys.comment} '{name}' of '{keys.language}' stands twice"
            mend = f"It was first at line {first[name]}: give each sentence an id of its own."
            raise DataError(keys.path, line, what, mend)
        first[name] = line


def _doubtful(keys: _Keys, common: Sequence[str]) -> set[str]:
    """Shared ids that a file with broken ids has at another place than the common order."""
    if set(keys.names) == set(common) or len(keys.names) != len(common):
        return set()
    moved = {name for name, there in zip(keys.names, common, strict=True) if name != there}
    shared = set(keys.names) & set(common)
    suspects = moved & shared
    return suspects if len(shared - suspects) >= _IN_PLACE * len(common) else set()


def _refusal(
    keys: Mapping[str, _Keys],
    doubtful: Mapping[str, set[str]],
    common: Sequence[str],
    kept: set[str],
) -> DataError:
    """The message for the language that agrees least with the others."""
    standard = set(common)

    def faults(language: str) -> int:
        return len(standard ^ set(keys[language].names)) + len(doubtful[language])

    worst = keys[max(keys, key=faults)]
    others = "the other languages" if len(keys) > 2 else "the other language"  # noqa: PLR2004 - two files
    alone = [name for name in worst.names if name not in standard]
    lacks = [name for name in common if name not in set(worst.names)]
    moved = [name for name in worst.names if name in doubtful[worst.language]]
    parts = [
        f"{len(names)} {what}: {', '.join(names[:_SHOWN])}{', ...' * (len(names) > _SHOWN)}"
        for what, names in (
            (f"that {others} lack{'s' * (len(keys) == 2)}", alone),  # noqa: PLR2004 - two files
            ("that it lacks", lacks),
            ("out of the common order, so probably on the wrong sentence", moved),
        )
        if names
    ]
    wrong = {*alone, *moved}
    line = next(
        (n for n, name in zip(worst.lines, worst.names, strict=True) if name in wrong), None
    )
    what = (
        f"the sentences of '{worst.language}' ({len(worst.names)}) do not match those of {others} "
        f"({len(common)}) by {worst.comment}: {'; '.join(parts)}"
    )
    if kept:
        mend = (
            f'Set `similarity.unmatched = "drop"` to compare the {len(kept)} sentences that all '
            "languages have, or mend the ids."
        )
    else:
        mend = "Leave the language out, or give it a file of the same sentences."
    return DataError(worst.path, line, what, mend)
