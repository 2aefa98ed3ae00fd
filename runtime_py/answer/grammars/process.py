"""Grammars in processes of their own, so that one that explodes takes only itself along.

See `worker`, which is the other side.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars import worker
from edgeinfinite.runtime_py.session.session import Cancelled

_START_SECONDS = 60.0
_ASKED_EVERY = 0.05
"""Seconds between two looks at whether the client has left."""

_SPARE_SECONDS = 5.0
"""After which a process is given up that the kernel should have ended."""

TOO_MUCH = "it takes too much time or memory"


class Refused(Exception):
    """The library's own words on what is wrong with a grammar."""


def is_available() -> bool:
    """Whether the system can copy processes; Windows can't."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


class GrammarHost:
    """A process with one tokenizer, which makes a child for each grammar; for any thread.

    Args:
        tokenizer: JSON, as in tokenizer.json.
        ends: tokens that end an answer.

    Raises:
        Refused: the library can't use the tokenizer.
    """

    def __init__(self, tokenizer: str, ends: Collection[int]) -> None:
        self._given = json.dumps({"tokenizer": tokenizer, "ends": sorted(ends)}).encode()
        self._lock = threading.Lock()
        self._control = self._start()

    def open(
        self, grammar: dict[str, Any], cancelled: Callable[[], bool] | None = None
    ) -> RemoteGrammar:
        """Compiles a grammar.

        Args:
            grammar: `kind`, `source` and `defaults`, see `worker`.
            cancelled: asked while it works; True ends it.

        Raises:
            Refused: it isn't one, or takes too much.
            Cancelled: `cancelled` said so.
        """
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                socket.send_fds(self._control, [b"g"], [theirs.fileno()])
            except OSError:  # the system ended it
                self._control = self._start()
                socket.send_fds(self._control, [b"g"], [theirs.fileno()])
        return RemoteGrammar(ours, grammar, cancelled or (lambda: False))

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", worker.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        weakref.finalize(ours, _end, process)
        ours.settimeout(_START_SECONDS)
        try:
            worker.send(ours, self._given)
            answer = worker.receive(ours)
        except OSError:
            answer = None
        if answer is None:
            raise EdgeInfiniteError(
                "the process for grammars doesn't start; answer without a grammar"
            )
        if answer[:1] == b"\1":
            raise Refused(answer[1:].decode("utf-8", "replace"))
        ours.settimeout(None)
        return ours


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its connection is closed, so it ends by itself; it is only waited for."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class RemoteGrammar:
    """One grammar at work in its process. Made by `GrammarHost.open`."""

    def __init__(
        self, connection: socket.socket, grammar: dict[str, Any], cancelled: Callable[[], bool]
    ) -> None:
        self._connection = connection
        self._cancelled = cancelled
        self._process: int | None = None
        first = self._answer(_START_SECONDS)
        self._process = struct.unpack("<I", first)[0]
        content = b"S" + json.dumps(grammar).encode()
        self.is_stopped = self._ask(content, worker.COMPILE_SECONDS) == b"\1"

    def compute_bitmask(self) -> bytes:
        """A bit for each token: whether it may come next.

        Raises:
            Refused: the grammar can't be followed, or takes too much.
            Cancelled: the client left.
        """
        return self._ask(b"M", worker.STEP_SECONDS)

    def consume_token(self, token: int) -> None:
        """Goes on with a token; raises as `compute_bitmask`."""
        content = b"A" + struct.pack("<I", token)
        self.is_stopped = self._ask(content, worker.STEP_SECONDS) == b"\1"

    def _ask(self, content: bytes, seconds: float) -> bytes:
        try:
            self._connection.settimeout(seconds + _SPARE_SECONDS)
            worker.send(self._connection, content)
        except OSError as error:
            raise Refused(TOO_MUCH) from error
        answer = self._answer(seconds + _SPARE_SECONDS)
        if answer[:1] == b"\1":
            raise Refused(answer[1:].decode("utf-8", "replace"))
        return answer[1:]

    def _answer(self, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        self._connection.settimeout(_ASKED_EVERY)
        while True:
            try:
                if not self._connection.recv(1, socket.MSG_PEEK):
                    raise Refused(TOO_MUCH)
                self._connection.settimeout(seconds)
                answer = worker.receive(self._connection)
            except TimeoutError:
                if self._cancelled():
                    self._kill()
                    raise Cancelled from None
                if time.monotonic() > end:
                    self._kill()
                    raise Refused(TOO_MUCH) from None
                continue
            except OSError as error:
                raise Refused(TOO_MUCH) from error
            if answer is None:
                raise Refused(TOO_MUCH)
            return answer

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
        self._connection.close()


class LocalGrammars:
    """`GrammarHost` without a process of its own, where the system can't copy processes."""

    def __init__(self, tokenizer: str, ends: Collection[int]) -> None:
        import llguidance

        try:
            self._tokenizer = llguidance.LLTokenizer(tokenizer, eos_token=sorted(ends))
        except Exception as error:  # the library raises what it likes
            raise Refused(str(error)) from error

    def open(
        self, grammar: dict[str, Any], cancelled: Callable[[], bool] | None = None
    ) -> LocalGrammar:
        """As `GrammarHost.open`; nothing ends it."""
        return LocalGrammar(worker.compiled(self._tokenizer, grammar))


class LocalGrammar:
    """As `RemoteGrammar`."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher
        self._check()

    @property
    def is_stopped(self) -> bool:
        return bool(self._matcher.is_stopped())

    def compute_bitmask(self) -> bytes:
        bits = bytes(self._matcher.compute_bitmask())
        self._check()
        return bits

    def consume_token(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise Refused(self._matcher.get_error())
