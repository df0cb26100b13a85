"""Functions called in another process, which stays for the next call.

What a call takes and gives travels by pickle over pipes; the function is one of a module, looked
up there by its name. The other process ends when this one does, however that ends.
"""

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO


class GoneError(OSError):
    """The other process has died; the call may or may not have been carried out."""


class Apart:
    """One other process, which loads a module and waits for calls.

    It hears neither Ctrl-C nor what else is sent to this terminal.

    Args:
        module: Module loaded at its start, by name; calls to its functions then wait for nothing.
        nice: How far it steps back for others, 0 to 19.
    """

    def __init__(self, module: str, *, nice: int = 0) -> None:
        command = [sys.executable, "-c", f"import {module}; from {__name__} import serve; serve()"]
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,
        )
        if nice:
            with suppress(OSError):  # a nicety, as it says
                os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - the function's own
        """Call a function over there and wait for what it gives; one call at a time.

        Raises:
            GoneError: the process has died.
            Exception: whatever the function raised.
        """
        assert self._process.stdin is not None  # noqa: S101 - we asked for pipes
        assert self._process.stdout is not None  # noqa: S101 - as above
        try:
            pickle.dump((function, arguments), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            is_right, found = pickle.load(self._process.stdout)  # noqa: S301 - our own process
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            self._process.kill()  # the pipe may break before the process has ended
            self._process.wait()
            raise GoneError(f"process {self._process.pid} of {function.__name__} died") from error
        if not is_right:
            raise found
        return found

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._process.kill()

    def close(self) -> None:
        """End it, after the call it is at."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # it has died
                pipe.close()  # type: ignore[union-attr]  # we asked for pipes
        self._process.wait()


def serve() -> None:
    """Answer the calls that come in by standard input, until it ends."""
    gc.freeze()  # what was loaded stays: to look through it at each collection takes a tenth
    gc.set_threshold(50_000, 20, 100)
    out: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed goes there
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
        except EOFError:
            return
        try:
            answer: tuple[bool, object] = (True, function(*arguments))
        except Exception as error:  # noqa: BLE001 - the parent raises it
            answer = (False, error)
        try:
            pickle.dump(answer, out, pickle.HIGHEST_PROTOCOL)
            out.flush()
        except BrokenPipeError:  # nobody waits for it any more
            return
