"""A server on loopback that serves the paths of GitHub and of the hub, and breaks as it is told."""

import hashlib
import socket
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer


@dataclass
class Site:
    """What is served, how it misbehaves, and what was asked.

    Attributes:
        files: Path -> content.
        faults: Path -> what becomes of the next requests, in order; `""` is a good answer.
            `cut:N` closes after N bytes, `hang:N` waits for `resume`, `N` answers
            with that status, `damaged` flips the last
            byte, `shift` sends other bytes than were asked for, and says so.
        asked: (method, path, Range) of every request.
        tokens: Authorization headers, by path.
        weak: Tags promise no exact bytes.
        tag: Tag of every file, instead of one for each content.
        hub: Paths below this redirect to `/cdn`, as the hub does, and say size and hash.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    hub: str = "/datasets/"
    weak: bool = False
    tag: str = ""
    resume: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def gets(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(method == "GET" and asked == path for method, asked, _ in self.asked)


class Handler(BaseHTTPRequestHandler):
    """Answers for the site of its server."""

    site: Site
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_HEAD(self) -> None:
        """Say whether there is such a file."""
        self._answer(is_head=True)

    def do_GET(self) -> None:
        """Send a file, or a part of it."""
        self._answer(is_head=False)

    def _answer(self, *, is_head: bool) -> None:
        wanted = self.headers.get("Range", "")
        self.site.asked.append((self.command, self.path, wanted))
        if token := self.headers.get("Authorization"):
            self.site.tokens[self.path] = token
        if self.path.startswith(self.site.hub) and self.path in self.site.files:
            return self._redirect()
        path = self.path.removeprefix("/cdn")
        content = self.site.files.get(path)
        if content is None:
            return self._status(404)
        if is_head:
            return self._status(200)
        fault = self.site.faults[path].popleft() if self.site.faults[path] else ""
        if fault.isdecimal():
            return self._status(int(fault))
        return self._send(content, fault, wanted)

    def _redirect(self) -> None:
        content = self.site.files[self.path]
        self.send_response(302)
        self.send_header("Location", f"{self.site.url}/cdn{self.path}")
        self.send_header("X-Linked-ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0123abcd")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _status(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, content: bytes, fault: str, wanted: str) -> None:
        tag = f'"{hashlib.md5(content).hexdigest()}"'  # noqa: S324 - a tag, not a seal
        tag = f"W/{tag}" if self.site.weak else self.site.tag or tag
        start, total = 0, len(content)
        if wanted and self.headers.get("If-Range") == tag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
        if fault == "damaged":
            content = content[:-1] + bytes([content[-1] ^ 1])
        self.send_response(206 if start else 200)
        if start:
            told = 0 if fault == "shift" else start
            self.send_header("Content-Range", f"bytes {told}-{total - 1}/{total}")
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(total - start))
        self.end_headers()
        end = total
        if fault.startswith(("cut:", "hang:")):
            end = min(total, start + int(fault.partition(":")[2]))
        if fault == "shift":
            start, end = 0, total - start
        self.wfile.write(content[start:end])
        if end < total:
            self.wfile.flush()
            if fault.startswith("hang:"):
                self.site.resume.wait()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        return None


class Server(ThreadingTCPServer):
    """Asks no name server for its own name, as HTTPServer would."""

    daemon_threads = True
    allow_reuse_address = True


def serve(site: Site) -> Server:
    """Start serving on a free port of loopback; the caller shuts it down."""
    server = Server(("127.0.0.1", 0), type("Bound", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    return server
