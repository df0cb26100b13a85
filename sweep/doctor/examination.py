"""All checks in order, their table, and what they come to."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from sweep.doctor import machine, places, services, software
from sweep.doctor.finding import Finding
from sweep.opened import storage_of, store_of
from sweep.study import Study

Check = Callable[[], Iterable[Finding]]

HEADER = ("status", "what", "found", "how to mend it")


def checks(study: Study | None, storage: str | None, *, is_quick: bool) -> list[tuple[str, Check]]:
    """The checks by their topic.

    Args:
        study: Also look at what this study needs; None for the machine alone.
        storage: Store to try instead of the study's, or of `./results`.
        is_quick: Leave out what takes seconds: torch, Ray, the network.
    """
    store = storage_of(storage or "results") if study is None else store_of(study, storage)
    uri = study.tracking.uri if study else ""
    found: list[tuple[str, Check]] = [
        ("Python", software.python),
        ("packages", software.packages),
        ("pins", software.pins),
        ("git", software.git),
        ("cores", machine.cores),
        ("memory", machine.memory),
        ("open files", machine.open_files),
        ("store", lambda: places.storage(store)),
        ("cache", places.cache),
        ("data", lambda: places.data(study)),
        ("Hugging Face", places.hugging_face),
    ]
    if is_quick:
        return found
    return [
        *found,
        ("hub", services.hub),
        ("MLflow", lambda: services.mlflow(store, uri)),
        ("GPU", machine.accelerators),
        ("Ray", services.ray),
    ]


def examined(
    checks: Iterable[tuple[str, Check]], begin: Callable[[str], object] = lambda _topic: None
) -> Iterator[Finding]:
    """What the checks find, one after the other; one that breaks is a finding itself.

    Args:
        checks: What to look at.
        begin: Is told each topic before it is looked at.
    """
    for topic, check in checks:
        begin(topic)
        try:
            yield from check()
        except Exception as error:  # noqa: BLE001 - the others are to be made all the same
            mend = "This check itself broke: please report it."
            yield Finding(topic, "fail", f"{type(error).__name__}: {error}", mend)


def rows(findings: Iterable[Finding]) -> list[list[str]]:
    """One row a finding, as `HEADER` names its columns."""
    return [[f.status, f.topic, f.found, f.mend] for f in findings]


def narrow_rows(findings: Iterable[Finding]) -> list[list[str]]:
    """One row a finding for a terminal: how to mend it stands below what was found."""
    return [[f.status, f.topic, f"{f.found}\n-> {f.mend}" if f.mend else f.found] for f in findings]


def as_json(findings: Iterable[Finding]) -> dict[str, object]:
    """The same for scripts."""
    listed = list(findings)
    return {"is_fit": is_fit(listed), "findings": [asdict(finding) for finding in listed]}


def is_fit(findings: Iterable[Finding]) -> bool:
    """Whether nothing failed."""
    return all(finding.status != "fail" for finding in findings)


def last_line(findings: list[Finding]) -> str:
    """What it comes to, in a sentence."""
    n_bad = sum(finding.status == "fail" for finding in findings)
    n_odd = sum(finding.status == "warn" for finding in findings)
    if n_bad:
        return f"{n_bad} of {len(findings)} checks failed: a run would not work here."
    noted = f", with {n_odd} to know about" if n_odd else ""
    return f"This machine is fit to run studies{noted}."
