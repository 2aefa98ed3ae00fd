"""Slow clients: a request's head and body have a limited time, and a body a limited size.

So has the taking of an answer: who takes nothing of it, or a byte at a time, is left.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from edgeinfinite.runtime_py.server.problems import ApiProblem

HEAD_SECONDS = 10.0
"""For a request's line and headers."""

BODY_SECONDS = 60.0
"""For its body."""

TAKING_SECONDS = 60.0
"""In which a client takes something of an answer that waits for it."""

LEAST_TAKEN = 1 << 12
"""Bytes of that, at least, or all that waits."""

LARGEST_BODY = 8 * 2**20
"""Bytes of a JSON body: about two million tokens."""

LARGEST_DOCUMENT = 64 * 2**20
"""Bytes of a document's file."""

_DRAINED = 4
"""So many times the limit is read and thrown away, so that a client that sends before it reads
gets to see the refusal."""


class _Counted:
    """A transport that counts what it is given to send."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.written = 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which by itself waits without end for a head that comes in drips.

    It also waits without end for a client that takes its answer in drips.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _taking_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._sent = _Counted(transport)
        super().connection_made(self._sent)  # type: ignore[arg-type]  # as a transport in all
        self._watch_head()
        self._watch_taking(waited=0, taken=0)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        if self._taking_timer is not None:
            self._taking_timer.cancel()
        super().connection_lost(exc)

    def _watch_taking(self, waited: int, taken: int) -> None:
        """Leaves a client that took next to nothing since `waited` bytes waited for it.

        Args:
            waited: bytes that waited the last time.
            taken: bytes that it had taken by then.
        """
        waits = self.transport.get_write_buffer_size()
        took = self._sent.written - waits
        if waited and waits and took - taken < LEAST_TAKEN:
            self.transport.abort()
            return
        self._taking_timer = self.loop.call_later(TAKING_SECONDS, self._watch_taking, waits, took)

    def _watch_head(self) -> None:
        """Starts the clock when a head has begun, stops it when the head is whole."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._lose_patience)

    def _lose_patience(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            line = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(line)
            self.transport.close()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


async def read_body(request: Request, *, largest: int = LARGEST_BODY) -> bytes:
    """A request's body.

    Raises:
        ApiProblem: 413 it is too large, 408 it takes too long, 415 it is compressed.
    """
    coding = request.headers.get("content-encoding", "identity")
    if coding.strip().lower() not in ("", "identity"):
        raise ApiProblem(415, f"the body is encoded as {coding[:40]}; send it as it is")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size <= largest:
                    parts.append(part)
                elif size > _DRAINED * largest:
                    break
    except TimeoutError as error:
        raise ApiProblem(
            408, f"the body didn't arrive within {BODY_SECONDS:.0f} seconds; send it again"
        ) from error
    except ClientDisconnect as error:
        raise ApiProblem(400, "the client left before its request was whole") from error
    if size > largest:
        raise ApiProblem(413, f"the body has more than {largest:,} bytes; send less at once")
    return b"".join(parts)
