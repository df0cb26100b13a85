"""One file over HTTP: resumed where it stopped, retried with growing pauses, checked by hash."""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

ATTEMPTS = 5
"""Tries in a row that bring nothing new; one that brought some bytes begins a new row."""

TIMEOUT_S = 30.0
"""Seconds without a byte after which a connection counts as dead."""

_LONGEST_PAUSE_S = 60.0
_CHUNK = 1 << 18
_DAMAGED = 3
"""Tries that a whole file with a wrong hash counts for: it is fetched twice, not five times."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_AGENT = "xling-sweep (python-urllib)"

Wait = Callable[[float], None]


class FetchError(Exception):
    """A file cannot be had: says which, why, and how to mend it."""


class AbsentError(FetchError):
    """The server has no such file."""


class UnreachableError(FetchError):
    """There is no answer from the server at all, so that asking for more is no use."""


class _PassingError(Exception):
    """Something that may go well the next time."""

    def __init__(
        self,
        what: str,
        *,
        reached: int = 0,
        pause_s: float = 0.0,
        is_mute: bool = False,
        cost: int = 1,
    ) -> None:
        """Note bytes reached, seconds asked for, whether nobody answered, and tries it counts."""
        super().__init__(what)
        self.reached, self.pause_s, self.is_mute, self.cost = reached, pause_s, is_mute, cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file that came over the network, whole.

    Attributes:
        size: Bytes.
        sha256: Hash of its content.
        commit: Commit that the server says it is of; empty where it says none.
    """

    size: int
    sha256: str
    commit: str = ""


class _Redirects(HTTPRedirectHandler):
    """Follows redirects, remembers what the first answer said, and never leaves https."""

    def __init__(self) -> None:
        self.first: HTTPMessage | None = None

    def redirect_request(  # noqa: PLR0917 - urllib's signature
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The next request; a public address never sends us to a plain one."""
        self.first = self.first or headers
        if urlsplit(req.full_url).scheme == "https" != urlsplit(newurl).scheme:
            raise FetchError(f"{req.full_url}: sends us on to {newurl}, which is not encrypted.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_base(url: str, option: str) -> str:
    """The base address of a mirror, without a slash at its end.

    Raises:
        FetchError: it is no http or https address.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise FetchError(f"{option} = {url}: not an address like https://mirror.example/path.")
    return url.rstrip("/")


def has(url: str, token: str = "") -> bool:
    """Whether the server has a file; False where it cannot be asked."""
    request = _request(url, token, {})
    request.method = "HEAD"
    try:
        with build_opener(_Redirects()).open(request, timeout=TIMEOUT_S) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's OK
    except (OSError, HTTPException, FetchError):
        return False


def download(
    url: str, part: Path, *, expected: str = "", token: str = "", wait: Wait = time.sleep
) -> Received:
    """Bring a file to `part`, going on from what an earlier call left there.

    Args:
        url: Where it is.
        part: Where it is put; beside it `<part>.json` remembers which version it is a part of.
        expected: sha256 that it must have; empty where none is known.
        token: Sent as a bearer token to the first server only, never to where it redirects.
        wait: Pauses between tries; a test hands in its own.

    Raises:
        AbsentError: the server has no such file.
        UnreachableError: no server answers there.
        FetchError: it was refused, or is still broken after several tries.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    failures = furthest = 0
    while True:
        try:
            return _attempt(url, part, expected, token)
        except _PassingError as error:
            failures = error.cost + (0 if error.reached > furthest else failures)
            furthest = max(furthest, error.reached)
            if failures >= ATTEMPTS:
                kind = UnreachableError if error.is_mute else FetchError
                mend = "Check the network" if error.is_mute else "Try later"
                raise kind(f"{url}: {error}. {mend}, or name a mirror.") from error
            wait(min(_LONGEST_PAUSE_S, max(error.pause_s, float(2 ** (failures - 1)))))


def _attempt(url: str, part: Path, expected: str, token: str) -> Received:
    offset, tag = _left(part, url)
    headers = {"Range": f"bytes={offset}-", "If-Range": tag} if offset else {}
    redirects = _Redirects()
    try:
        answer = build_opener(redirects).open(_request(url, token, headers), timeout=TIMEOUT_S)
    except HTTPError as error:
        with error:
            size = _refused(error, url, part, offset)
        return _whole(part, size, size, expected, redirects.first or HTTPMessage())
    except URLError as error:
        raise _PassingError(f"no answer ({error.reason})", is_mute=True) from error
    except (OSError, HTTPException) as error:
        raise _PassingError(
            f"the connection broke ({str(error) or type(error).__name__})"
        ) from error
    with answer:
        told = redirects.first or answer.headers
        start, total = _extent(answer, offset, part)
        _remember(part, url, answer.headers)
        size = _append(answer, part, start)
    return _whole(part, size, total, expected, told)


def _request(url: str, token: str, headers: Mapping[str, str]) -> Request:
    # As it is: a file that is decompressed on the way cannot be resumed.
    always = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    request = Request(url, headers={**always, **headers})  # noqa: S310 - check_base: http(s) only
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def _refused(error: HTTPError, url: str, part: Path, offset: int) -> int:
    """Total size when a refusal means that all is there already; raises for every other one."""
    if error.code == 416:  # noqa: PLR2004 - Range Not Satisfiable
        total = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", "").strip())
        if total and offset and int(total[1]) == offset:
            return offset
        _forget(part)
        raise _PassingError("the server has less than was fetched before; starting over")
    if error.code in {404, 410}:
        raise AbsentError(f"{url}: there is no such file ({error.code} {error.reason}).")
    if error.code in _PASSING:
        pause = error.headers.get("Retry-After", "")
        pause_s = float(pause) if pause.isdecimal() else 0.0
        raise _PassingError(f"the server says {error.code} {error.reason}", pause_s=pause_s)
    mend = {
        401: "It asks for a login: set HF_TOKEN.",
        403: "It asks for rights, or blocks this address: set HF_TOKEN, or name a mirror.",
    }
    what = f"{url}: refused ({error.code} {error.reason})."
    raise FetchError(f"{what} {mend.get(error.code, 'Open the address in a browser to see why.')}")


def _extent(answer: HTTPResponse, offset: int, part: Path) -> tuple[int, int | None]:
    """Where the bytes that follow belong, and the size of the whole file, if it is told."""
    if answer.status == 206:  # noqa: PLR2004 - Partial Content
        told = answer.headers.get("Content-Range", "").strip()
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", told)
        if found is None or int(found[1]) != offset:
            _forget(part)
            raise _PassingError(f"asked for bytes from {offset}, and was sent '{told}'")
        return offset, None if found[2] == "*" else int(found[2])
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _append(answer: HTTPResponse, part: Path, start: int) -> int:
    """Write what comes behind `start`; the size of the part afterwards."""
    with part.open("r+b" if start else "wb") as file:
        file.truncate(start)
        file.seek(start)
        size = start
        while True:
            try:
                chunk = answer.read1(_CHUNK)
            except (OSError, HTTPException) as error:
                why = str(error) or type(error).__name__
                what = f"the connection broke after {size} bytes ({why})"
                raise _PassingError(what, reached=size) from error
            if not chunk:
                break
            file.write(chunk)
            file.flush()  # what a kill finds here need not come again
            size += len(chunk)
        os.fsync(file.fileno())
    return size


def _whole(
    part: Path, size: int, total: int | None, expected: str, headers: HTTPMessage
) -> Received:
    """Check size and hash of what came."""
    if total is not None and size < total:
        what = f"the connection ended after {size} of {total} bytes"
        raise _PassingError(what, reached=size)
    with part.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    linked = (headers.get("X-Linked-ETag") or "").strip('"')  # the hub's hash of a large file
    for wanted in (expected, linked if re.fullmatch(r"[0-9a-f]{64}", linked) else ""):
        if wanted and wanted != sha256:
            _forget(part)
            what = f"its sha256 is {sha256}, not {wanted}: damaged, or not the same file any more"
            raise _PassingError(what, cost=_DAMAGED)
    return Received(size=size, sha256=sha256, commit=headers.get("X-Repo-Commit") or "")


def _left(part: Path, url: str) -> tuple[int, str]:
    """Bytes that an earlier try left, and the tag of the version that they belong to."""
    try:
        about = json.loads(_about(part).read_text(encoding="utf-8"))
        size = part.stat().st_size
        is_same = about["url"] == url
        tag = str(about["etag"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""
    return (size, tag) if is_same and tag else (0, "")


def _remember(part: Path, url: str, headers: HTTPMessage) -> None:
    """Note the version, so that a later try goes on with the same one or starts over."""
    tag = headers.get("ETag", "")
    is_exact = tag.startswith('"')  # a weak one (W/) does not promise the same bytes
    text = json.dumps({"url": url, "etag": tag if is_exact else ""})
    _about(part).write_text(text, encoding="utf-8")


def _forget(part: Path) -> None:
    for path in (part, _about(part)):
        path.unlink(missing_ok=True)


def _about(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")
