"""Whether a node of a cluster can do a job: it must see the driver's store, and the job's files.

A store in a folder that only the driver's machine has would swallow what other machines commit:
trials would run, be paid for, and be missing at the end. So each worker looks before it begins.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from sweep.lock import NAME
from sweep.storage import Store
from trainables.spec import Job

_TRIES = 5  # a network filesystem may show a new file late to a machine that has looked before


def blindness(job: Job, mark: str, *, wait_s: float = 1.0) -> str:
    """Say what this machine lacks for a job; empty when nothing.

    Args:
        job: What is to be run here.
        mark: The token of the driver's lock, which stands in the store; empty to leave that out.
        wait_s: Seconds between two looks for it.
    """
    host = socket.gethostname()
    if mark and not _sees_store(job.store, mark, wait_s):
        return (
            f"{host} does not see the driver's store {job.store}. Put the store where all nodes "
            "see it under one name: a shared filesystem, or a bucket (--storage s3://...)."
        )
    for path in _files(job):
        if not path.exists():
            return (
                f"{host} does not see {path}, which {job.study} reads. Every node needs it at "
                "that path: a shared filesystem, or file_mounts in cluster.yaml."
            )
    return ""


def _sees_store(where: str, mark: str, wait_s: float) -> bool:
    if urlsplit(where).scheme not in ("", "file"):
        return True
    store = Store(where)
    for tries_left in reversed(range(_TRIES)):
        try:
            os.listdir(store.root)  # noqa: PTH208 - only to make NFS look anew
            if json.loads(store.read(NAME))["token"] == mark:
                return True
        except (OSError, ValueError, KeyError):
            pass
        if tries_left:
            time.sleep(wait_s)
    return False


def _files(job: Job) -> Iterator[Path]:
    """Files and folders of this job that lie on a filesystem."""
    spec, request = job.spec, job.request
    similarity = request.similarity
    refs = (spec.train, spec.dev, *request.targets, *(similarity.parallel if similarity else ()))
    places = dict.fromkeys([spec.encoder.location, *(ref.location for ref in refs if ref)])
    for place in places:
        if Path(place).is_absolute():
            yield Path(place)
