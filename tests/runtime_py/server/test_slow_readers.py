"""Clients that take their answer in drips hold nothing for long."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from edgeinfinite.runtime_py.server import patience

LARGE = b"x" * (24 << 20)
"""More than the system's buffers take."""

PIECE = 1 << 12


@contextmanager
def served(few: bool = False) -> Iterator[tuple[uvicorn.Server, int]]:
    """A server that answers with `LARGE`, or without end.

    Args:
        few: whether the system's buffers take next to nothing.
    """

    async def large(request: Request) -> Response:
        return Response(LARGE)

    async def piece_by_piece(request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"y" * (8 * PIECE)
            while True:
                await asyncio.sleep(0.02)
                yield b"y" * PIECE

        return StreamingResponse(pieces())

    listener = socket.create_server(("127.0.0.1", 0))
    if few:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
    config = uvicorn.Config(
        Starlette(routes=[Route("/", large), Route("/pieces", piece_by_piece)]),
        http=patience.PatientProtocol,
        lifespan="off",
        log_level="error",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield server, listener.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def asked(port: int, path: str = "/", few: bool = False) -> socket.socket:
    client = socket.socket()
    client.settimeout(20)
    if few:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    return client


def until(holds: object, seconds: float = 20) -> None:
    ends = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.parametrize("drips", [0, 1])
def test_a_client_that_takes_next_to_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, drips: int
) -> None:
    monkeypatch.setattr(patience, "TAKING_SECONDS", 0.4)
    with served() as (server, port):
        client = asked(port)
        until(lambda: server.server_state.connections)
        start = time.monotonic()
        while server.server_state.connections and time.monotonic() - start < 20:
            if drips:
                client.recv(drips)
            time.sleep(0.02)
        assert time.monotonic() - start < 10
        client.close()


def test_a_slow_client_that_goes_on_taking_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TAKING_SECONDS", 0.2)
    with served() as (_, port):
        client, got = asked(port), 0
        start = time.monotonic()
        while got < len(LARGE):
            block = client.recv(1 << 18)
            assert block
            got += len(block)
            time.sleep(0.01 if got < 12 << 20 else 0)
        assert time.monotonic() - start > 0.4
        client.close()


def test_a_client_that_takes_as_much_as_is_made_is_kept_whatever_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "TAKING_SECONDS", 0.3)
    waited: list[int] = []
    watch = patience.PatientProtocol._watch_taking

    def noted(self: patience.PatientProtocol, waited_before: int, taken: int) -> None:
        waited.append(self.transport.get_write_buffer_size())
        watch(self, waited_before, taken)

    monkeypatch.setattr(patience.PatientProtocol, "_watch_taking", noted)
    with served(few=True) as (server, port):
        client = asked(port, "/pieces", few=True)
        ends = time.monotonic() + 1.5
        while time.monotonic() < ends:
            assert client.recv(PIECE)
            time.sleep(0.02)
        assert server.server_state.connections
        assert waited.count(0) <= 1, "nothing waited"
        client.close()
