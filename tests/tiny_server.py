"""A real server on a free port, in this process, and OpenAI's own client for it."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import openai

from edgeinfinite.runtime_py.server.app import bind, run
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.served import Served, served_artifact
from edgeinfinite.runtime_py.server.service import Service


@dataclass
class Running:
    service: Service
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, key: str = "none") -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60)

    def raw(self, content: bytes, *, seconds: float = 20) -> bytes:
        """What the server says to bytes on a connection of their own.

        Raises ConnectionError if the server closed it before all bytes were on their way.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(content)
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError as error:
                if error.errno != errno.ENOTCONN:
                    raise
                # The kernel's word for "closed already"; Python makes it no ConnectionError.
                raise ConnectionAbortedError(error.errno, error.strerror) from error
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        """Waits; fails if it doesn't come true."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "it didn't come true"
            time.sleep(0.01)


@contextlib.contextmanager
def serving(artifact: Path, **options: object) -> Iterator[Running]:
    given = ServeOptions(**{"port": 0} | options)  # type: ignore[arg-type]
    with serving_this(lambda: served_artifact(artifact, given, threads=1), given) as running:
        yield running


@contextlib.contextmanager
def serving_this(served: Callable[[], Served], given: ServeOptions) -> Iterator[Running]:
    listener = bind(given)
    service = Service(served(), given)
    servers: list = []
    thread = threading.Thread(
        target=run, args=(service, listener), kwargs={"prepared": servers.append}, daemon=True
    )
    thread.start()
    running = Running(service, listener.getsockname()[1])
    running.until(lambda: bool(servers) and servers[0].started)
    try:
        yield running
    finally:
        servers[0].should_exit = True
        thread.join(30)
        assert not thread.is_alive()
