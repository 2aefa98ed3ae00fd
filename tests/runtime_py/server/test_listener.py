"""What a server listens on."""

from __future__ import annotations

import asyncio
import socket

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.server.app import bind
from edgeinfinite.runtime_py.server.options import ServeOptions


def test_small_pieces_are_sent_at_once() -> None:
    """With Nagle's algorithm each would wait for the client's delayed acknowledgement, 40 ms."""
    settings: list[int] = []

    async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        settings.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def ask(listener: socket.socket) -> None:
        server = await asyncio.start_server(look, sock=listener)
        async with server:
            reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            await reader.read()
            writer.close()

    with bind(ServeOptions(port=0)) as listener:
        asyncio.run(ask(listener))
    assert settings == [1]


def test_a_port_that_is_taken_is_told() -> None:
    with bind(ServeOptions(port=0)) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(EdgeInfiniteError, match=f"can't listen on 127.0.0.1 port {port}"):
            bind(ServeOptions(port=port))
