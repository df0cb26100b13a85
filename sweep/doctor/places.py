"""Where files go: the store, the cache, the data, Hugging Face's cache."""

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from sweep.cache import CACHE_VARIABLE, cache_folder
from sweep.complaints import StudyError
from sweep.doctor.finding import Finding, size
from sweep.resolve import ROOT_VARIABLE, resolve
from sweep.storage import StorageError, Store
from sweep.study import Study

_LITTLE, _NONE = 5e9, 0.5e9
"""Bytes of free disk below which one should know, and below which a sweep will fail."""

_SKEW_S = 60.0
"""Seconds by which the clocks of store and machine may differ; a driver is dead after 300."""


def storage(store: str) -> Iterator[Finding]:
    """Write into the store as a worker does: aside, then visible in one step, and only once."""
    try:
        folder = Store(store)
    except ValueError as error:
        yield Finding("store", "fail", str(error), "See --storage.")
        return
    made = _to_be_made(Path(folder.root)) if folder.is_local else None
    name = f"doctor/{uuid.uuid4().hex}"
    began = time.time()
    try:
        first = folder.publish_new(name, b"one")
        again = folder.publish_new(name, b"two")
        back = folder.read(name)
        written = next(file.modified for file in folder.files("doctor") if file.path == name)
        folder.delete(name)
        folder.delete_folder("doctor")
    except (StorageError, OSError) as error:
        yield Finding("store", "fail", str(error), "Choose another --storage, or mend this one.")
        return
    took = time.time() - began
    if made is not None:
        shutil.rmtree(made, ignore_errors=True)
    if (first, again, back) != (True, False, b"one"):
        found = f"{folder.where}: a file that was there was replaced (first {first}, then {again})"
        yield Finding("store", "fail", found, "Choose another --storage: results could be lost.")
    else:
        yield Finding("store", "ok", f"{folder.where}: atomic, {took * 1000:.0f} ms for two writes")
    if written is not None:
        yield from _clock(abs(written.timestamp() - began))
    if folder.is_local:
        yield from _lock(Path(folder.root))
        yield _space("disk of the store", Path(folder.root))


def _clock(skew: float) -> Iterator[Finding]:
    if skew > _SKEW_S:
        found = f"the store's clock and this machine's differ by {skew:.0f} s"
        yield Finding(
            "clock", "warn", found, "Set both (chrony, ntpd): the driver's lock needs it."
        )
    else:
        yield Finding("clock", "ok", f"within {max(1, round(skew))} s of the store's")


def _lock(folder: Path) -> Iterator[Finding]:
    """Whether a file lock keeps a second one out, which two drivers on one store rely on."""
    place = _existing(folder)
    path = place / f".doctor-{uuid.uuid4().hex}.lock"
    try:
        with FileLock(path):
            try:
                FileLock(path, is_singleton=False).acquire(timeout=0)
            except Timeout:
                yield Finding("locks", "ok", "a file lock keeps others out")
            else:
                found = f"file locks do nothing on {place}"
                mend = "Never start two drivers on this store; or mount it with locking."
                yield Finding("locks", "warn", found, mend)
    except (OSError, NotImplementedError) as error:
        mend = "Never start two drivers on this store; or mount it with locking."
        yield Finding("locks", "warn", f"no file locks on {place}: {error}", mend)
    finally:
        path.unlink(missing_ok=True)


def cache() -> Iterator[Finding]:
    """The local folder of tokenised data and logs."""
    folder = Path(cache_folder())
    place = _existing(folder)
    if not os.access(place, os.W_OK):
        mend = f"Name another folder in {CACHE_VARIABLE}."
        yield Finding("cache", "fail", f"{folder} cannot be written", mend)
        return
    found = _space("cache", place)
    yield Finding("cache", found.status, f"{folder}, {found.found}", found.mend)


def hugging_face() -> Iterator[Finding]:
    """Hugging Face's cache, whether it is asked alone, and whether there is a token."""
    from huggingface_hub import constants, get_token

    folder = Path(constants.HF_HUB_CACHE)
    models = list(folder.glob("models--*")) if folder.is_dir() else []
    token = "with a token" if get_token() else "no token"
    state = "offline (HF_HUB_OFFLINE is set)" if constants.HF_HUB_OFFLINE else "online"
    found = f"{folder}: {len(models)} models, {state}, {token}"
    place = _existing(folder)
    if not os.access(place, os.W_OK) and not constants.HF_HUB_OFFLINE:
        yield Finding("Hugging Face", "warn", f"{found}; not writable", "Set HF_HOME elsewhere.")
    else:
        yield Finding("Hugging Face", "ok", found)


def data(study: Study | None) -> Iterator[Finding]:
    """The data folder; with a study, its encoder and every file that it reads."""
    if study is not None:
        try:
            found = resolve(study)
        except StudyError as error:
            first, *more = str(error).splitlines()
            yield Finding(f"study {study.name}", "fail", first, " ".join(map(str.strip, more)))
            return
        n_files = len(
            {*found.train.values(), *found.dev.values(), *found.parallel}.union(
                *found.targets.values()
            )
        )
        name = found.encoder.name
        yield Finding(
            f"study {study.name}", "ok", f"encoder {name} and all {n_files} files are there"
        )
        return
    named = os.environ.get(ROOT_VARIABLE, "")
    if not named:
        yield Finding("data", "ok", f"{ROOT_VARIABLE} is not set: studies name their own data.root")
    elif Path(named).expanduser().is_dir():
        yield Finding("data", "ok", f"{ROOT_VARIABLE}={named}")
    else:
        mend = f"Mend {ROOT_VARIABLE}, or unset it."
        yield Finding("data", "fail", f"{ROOT_VARIABLE}={named}: no such folder", mend)


def _space(topic: str, place: Path) -> Finding:
    free = shutil.disk_usage(_existing(place)).free
    if free < _NONE:
        return Finding(topic, "fail", f"{size(free)} free", "Free some, or choose another place.")
    if free < _LITTLE:
        mend = (
            'A checkpoint of a base encoder takes 3 GB, kept weights (keep = "best") 0.7 GB each.'
        )
        return Finding(topic, "warn", f"{size(free)} free", mend)
    return Finding(topic, "ok", f"{size(free)} free")


def _to_be_made(path: Path) -> Path | None:
    """The topmost folder on the way that is not there yet; None where all are."""
    return next((place for place in (*reversed(path.parents), path) if not place.exists()), None)


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next(place for place in (path, *path.parents) if place.exists())
