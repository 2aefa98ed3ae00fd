"""A hostile document costs its client's slot and nothing else, and that only while it waits."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import httpx

PAGE = b"<ol>" + b"<li><b>x</b> <sup>2</sup></li>" * 400_000
"""12 MB that take many seconds to be read."""


def test_a_hostile_document_delays_no_other_and_ends_with_its_client(serve):
    with serve(parallel=1) as server:

        def post() -> None:
            with suppress(httpx.ReadTimeout):
                httpx.post(f"{server.url}/documents?name=a.html", content=PAGE, timeout=2)

        client = threading.Thread(target=post)
        client.start()
        server.until(lambda: server.service.jobs.running == 1)
        other = httpx.Client(trust_env=False)
        waits = []
        while server.service.jobs.running and client.is_alive():
            waits.append(health(other, server.url))
        client.join()
        server.until(lambda: server.service.jobs.running == 0)
        idle = [health(other, server.url) for _ in waits]
        other.close()
        assert len(waits) > 10
        assert sorted(waits)[len(waits) * 9 // 10] < max(idle) + 0.05


def health(client: httpx.Client, url: str) -> float:
    """Seconds until the server says that it lives."""
    before = time.perf_counter()
    assert client.get(f"{url}/health").status_code == 200
    waited = time.perf_counter() - before
    time.sleep(0.02)
    return waited
