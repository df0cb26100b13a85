"""What is installed: Python, our packages against what we ask for and what was tested, git."""

import importlib.metadata
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from sweep.doctor.finding import Finding

OURS = "xling-sweep"
_OLDEST = (3, 11)
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;#]+)")


def python() -> Iterator[Finding]:
    """The interpreter."""
    text = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST:
        yield Finding("Python", "fail", text, "Make the environment with Python 3.11 or newer.")
    else:
        yield Finding("Python", "ok", text)


def packages() -> Iterator[Finding]:
    """Every package that we ask for: there, and of a version that we ask for."""
    try:
        asked = importlib.metadata.requires(OURS) or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            "packages", "fail", f"{OURS} is not installed", "pip install -e . (or make setup)"
        )
        return
    needs = [need for need in map(Requirement, asked) if need.marker is None]
    wrong = [fault for need in needs if (fault := _fault(need))]
    if wrong:
        yield Finding("packages", "fail", "; ".join(wrong), "pip install -e . -c constraints.txt")
        return
    main = ("torch", "transformers", "ray", "optuna", "mlflow", "pyarrow")
    listed = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in main)
    yield Finding("packages", "ok", f"all {len(needs)} are there: {listed}")


def pins(file: Path | None = None) -> Iterator[Finding]:
    """Versions against those that the tests are run with, where the checkout is at hand."""
    file = file or Path(__file__).parents[2] / "constraints.txt"
    if not file.is_file():
        return
    other = _unlike(_PIN.finditer(file.read_text(encoding="utf-8")))
    if not other:
        yield Finding("pins", "ok", f"as in {file.name}")
        return
    shown = ", ".join(f"{name} {here} (tested: {pin})" for name, (here, pin) in other.items())
    yield Finding("pins", "warn", shown, f"pip install -e . -c {file.name}")


def git() -> Iterator[Finding]:
    """Whether rows can name the commit that made them."""
    from sweep.commit import code_version

    version = code_version()
    if shutil.which("git") is None:
        yield Finding("git", "warn", f"not there; rows say {version}", "Install git.")
    elif version.endswith("+"):
        yield Finding("git", "ok", f"{version[:12]}+: files were changed since that commit")
    else:
        yield Finding("git", "ok", f"rows will say {version[:12]}")


def _fault(need: Requirement) -> str:
    try:
        here = importlib.metadata.version(need.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{need.name} is missing"
    fits = need.specifier.contains(here, prereleases=True)
    return "" if fits else f"{need.name} {here} is not {need.specifier}"


def _unlike(pins: "Iterator[re.Match[str]]") -> Mapping[str, tuple[str, str]]:
    """Package -> (version here, pinned version), where both are there and differ."""
    found = {}
    for pin in pins:
        try:
            here = importlib.metadata.version(pin["name"])
        except importlib.metadata.PackageNotFoundError:
            continue
        # A build for one device (2.13.0+cpu) is the pinned version all the same.
        if Version(here).public != Version(pin["version"]).public:
            found[pin["name"]] = (here, pin["version"])
    return found
