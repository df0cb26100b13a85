"""Fetch data by name into a folder: one file after the other, each checked, noted, put in place.

A file appears under its name only whole and converted. What a broken call leaves behind lies in
`.fetch` below the folder; the next call goes on from there, and downloads nothing twice.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from sweep.complaints import StudyError
from sweep.fetch_convert import convert
from sweep.fetch_http import (
    AbsentError,
    FetchError,
    Received,
    UnreachableError,
    Wait,
    check_base,
    download,
    has,
)
from sweep.fetch_manifest import (
    Entry,
    is_intact,
    read_manifest,
    sha256_of,
    write_manifest,
)
from sweep.fetch_names import HUB_URL, UD_URL, Wanted, wanted
from sweep.resolve import wanted_files
from sweep.study import Study

ASIDE = ".fetch"
"""Folder of parts; hidden, so that nobody takes a part for data."""

Status = Literal["there", "fetched", "to fetch", "to resume", "absent", "failed", "not tried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file.

    Attributes:
        wanted: The file.
        status: `there` already; `fetched` now; `to fetch` and `to resume` in a dry run; `absent`
            where a treebank may do without; `failed`; `not tried` once the network was gone.
        size: Bytes of the file, or of the part that is there; 0 where there is none.
        told: Why it failed, or what its conversion counted.
    """

    wanted: Wanted
    status: Status
    size: int = 0
    told: str = ""

    @property
    def is_fault(self) -> bool:
        """The file is not there, and should be."""
        return self.status in {"failed", "not tried"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrors:
    """Where data come from.

    Attributes:
        release: Release of Universal Dependencies where a name says none.
        ud_url: Base of treebank repositories.
        hub_url: The Hugging Face hub.
    """

    release: str = "2.4"
    ud_url: str = UD_URL
    hub_url: str = HUB_URL

    def at(self, ud_url: str | None, hub_url: str | None) -> "Mirrors":
        """These, with other addresses where they are given."""
        return replace(self, ud_url=ud_url or self.ud_url, hub_url=hub_url or self.hub_url)


def files_of(names: Iterable[str], mirrors: Mirrors) -> tuple[Wanted, ...]:
    """The files that names stand for, each once.

    Raises:
        StudyError: a name means nothing that can be fetched.
        FetchError: a mirror is no address.
    """
    ud_url = check_base(mirrors.ud_url, "--ud-url")
    hub_url = check_base(mirrors.hub_url, "--hub-url")
    found: dict[str, Wanted] = {}
    for name in names:
        for file in wanted(name, release=mirrors.release, ud_url=ud_url, hub_url=hub_url):
            found.setdefault(file.path, file)
    return tuple(found.values())


def names_of(study: Study) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a study reads, as names (`en_ewt:train`), and what of it has to be got by hand."""
    names, by_hand = [], []
    for code, split, *_ in wanted_files(study):
        whole, _, _ = code.partition("[")  # en_ewt[:500] is a part of a file
        name = f"{whole}:{split}"
        try:
            wanted(name)
        except StudyError:
            by_hand.append(name)
        else:
            names.append(name)
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(by_hand))


def fetch(
    files: Sequence[Wanted],
    folder: Path,
    *,
    token: str = "",
    is_offline: bool = False,
    wait: Wait = time.sleep,
    tell: Callable[[Outcome], None] = lambda _: None,
) -> tuple[Outcome, ...]:
    """Bring files into a folder and note them in its manifest.

    Args:
        files: What to fetch.
        folder: Is made if it is not there.
        token: For files of the hub.
        is_offline: Files of the hub are not asked for.
        wait: Pauses between tries.
        tell: Is told every outcome at once.

    Raises:
        FetchError: another call works in the folder, or its manifest is none of ours.
    """
    try:
        (folder / ASIDE).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(f"{folder}: cannot be written ({error.strerror}).") from error
    outcomes = []
    try:
        with FileLock(folder / ASIDE / "lock", timeout=0):
            entries = read_manifest(folder)
            off = "HF_HUB_OFFLINE is set"
            silent = {file.server: off for file in files if is_offline and file.layout}
            for outcome in _each(files, folder, entries, silent, token=token, wait=wait):
                tell(outcome)
                outcomes.append(outcome)
    except Timeout:
        raise FetchError(f"{folder}: another `sweep data get` works there. Wait for it.") from None
    return tuple(outcomes)


def rehearse(files: Sequence[Wanted], folder: Path) -> tuple[Outcome, ...]:
    """What `fetch` would do; asks no server and writes nothing.

    Raises:
        FetchError: the folder's manifest is none of ours.
    """
    entries = read_manifest(folder)
    outcomes = []
    for file in files:
        try:
            size = _size_there(file, folder, entries)
        except FetchError as error:
            outcomes.append(Outcome(wanted=file, status="failed", told=str(error)))
            continue
        part = _part(file, folder)
        if size is not None:
            outcomes.append(Outcome(wanted=file, status="there", size=size))
        elif part.is_file():
            outcomes.append(Outcome(wanted=file, status="to resume", size=part.stat().st_size))
        else:
            outcomes.append(Outcome(wanted=file, status="to fetch"))
    return tuple(outcomes)


def _each(
    files: Sequence[Wanted],
    folder: Path,
    entries: dict[str, Entry],
    silent: dict[str, str],
    *,
    token: str,
    wait: Wait,
) -> Iterator[Outcome]:
    """Outcomes in order; `silent` says which servers are not asked any more, and why."""
    for file in files:
        try:
            size = _size_there(file, folder, entries)
            if size is not None:
                yield Outcome(wanted=file, status="there", size=size)
            elif file.server in silent:
                told = f"{file.path}: not there, and {silent[file.server]}."
                yield Outcome(wanted=file, status="not tried", told=told)
            else:
                yield _one(file, folder, entries, token, wait)
        except UnreachableError as error:
            silent[file.server] = f"{file.server} does not answer"
            yield Outcome(wanted=file, status="failed", told=str(error))
        except AbsentError as error:
            if file.is_needed:
                yield Outcome(wanted=file, status="failed", told=f"{error} {_elsewhere(file)}")
            else:
                yield Outcome(wanted=file, status="absent", told="not part of this treebank")
        except FetchError as error:
            yield Outcome(wanted=file, status="failed", told=str(error))
        except OSError as error:
            told = f"{folder / file.path}: cannot be written ({error.strerror or error})."
            yield Outcome(wanted=file, status="failed", told=told)


def _one(file: Wanted, folder: Path, entries: dict[str, Entry], token: str, wait: Wait) -> Outcome:
    part, before = _part(file, folder), entries.get(file.path)
    received = download(
        file.url,
        part,
        expected=_expected(file, before),
        token=token if file.layout else "",
        wait=wait,
    )
    ready, note = _readied(file, part)
    entry = Entry(
        path=file.path,
        sha256=sha256_of(ready),
        size=ready.stat().st_size,
        url=file.url,
        commit=_printable(received),
        source_sha256=received.sha256 if file.layout else "",
        fetched=datetime.now(UTC).isoformat(timespec="seconds"),
        note=note,
    )
    if before is not None and before.sha256 != entry.sha256:
        told = f"{file.path}: its conversion changed; take its line out of the manifest to accept."
        raise FetchError(told)
    # First the note, then the file: a file without a note would be taken for the user's own.
    entries[file.path] = entry
    write_manifest(folder, entries)
    (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
    ready.replace(folder / file.path)
    for left in (part, part.with_name(f"{part.name}.json")):
        left.unlink(missing_ok=True)
    return Outcome(wanted=file, status="fetched", size=entry.size, told=note)


def _size_there(file: Wanted, folder: Path, entries: Mapping[str, Entry]) -> int | None:
    """Size of a file that is there as it was fetched; None where it has to be fetched.

    Raises:
        FetchError: there is another file of that name, which is not overwritten.
    """
    entry, path = entries.get(file.path), folder / file.path
    if entry is not None and not entry.url.endswith(f"/{file.source}"):
        what = f"{path}: was fetched from {entry.url}, which is another version"
        raise FetchError(f"{what}. Choose another folder, or take it and its manifest line away.")
    if not path.exists():
        return None
    if entry is None:
        raise FetchError(f"{path}: is there, and not fetched by `sweep data get`. Take it away.")
    if not is_intact(folder, entry):
        raise FetchError(
            f"{path}: is not as it was fetched on {entry.fetched} (sha256 {entry.sha256}): changed "
            "or damaged. Take it away, and it is fetched again."
        )
    return entry.size


def _expected(file: Wanted, before: Entry | None) -> str:
    """Hash that the download must have, if the same was fetched before and is gone."""
    if before is None:
        return ""
    return before.source_sha256 if file.layout else before.sha256


def _readied(file: Wanted, part: Path) -> tuple[Path, str]:
    """The file as it is to lie in its place, and what is worth noting about it."""
    if not file.layout:
        _check_trees(file, part)
        return part, ""
    ready = part.with_suffix(".new")
    try:
        return ready, str(convert(part, ready, file.layout, file.language))
    except FetchError:
        part.unlink(missing_ok=True)
        raise


def _check_trees(file: Wanted, part: Path) -> None:
    """Refuse what is plainly no treebank: a login page, or a pointer to a large file."""
    with part.open("rb") as opened:
        start = opened.read(40).removeprefix(b"\xef\xbb\xbf")
    if not start[:1].isdigit() and not start.startswith(b"#"):
        part.unlink()
        shown = start.decode("utf-8", "replace").splitlines()[:1]
        told = f"'{shown[0]}'" if shown else "nothing"
        raise FetchError(
            f"{file.url}: not CoNLL-U, as it begins with {told}. Open it in a browser."
        )


def _elsewhere(file: Wanted) -> str:
    """Which release has a file that this one lacks."""
    if not file.elsewhere:
        return "Check the language, and the revision behind the '@'."
    for release, url in file.elsewhere:
        if has(url):
            name = file.name.partition(":")[0].partition("@")[0]
            return f"Release {release} has it: write {name}@{release}."
    return "No other release has it. Check the name of the treebank, and its splits."


def _part(file: Wanted, folder: Path) -> Path:
    name = hashlib.sha256(file.url.encode()).hexdigest()[:24]
    return folder / ASIDE / f"{name}.part"


def _printable(received: Received) -> str:
    """The commit, unless a server sends something that a table cannot hold."""
    return received.commit if received.commit.isalnum() else ""
