"""Clients that take their answer in drips hold nothing for long."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from edgeinfinite.runtime_py.server import patience

LARGE = b"x" * (24 << 20)
"""More than the system's buffers take."""


@contextmanager
def served() -> Iterator[tuple[uvicorn.Server, int]]:
    """A server whose one route answers with `LARGE`."""

    async def large(request: Request) -> Response:
        return Response(LARGE)

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        Starlette(routes=[Route("/", large)]),
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


def asked(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
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
