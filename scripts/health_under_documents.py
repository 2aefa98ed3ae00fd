"""How long /health waits while hostile documents are read: `ARTIFACT [--seconds N] [--json F]`.

Each kind of document is read alone first: the rows have its time, the peak memory of the process
that reads it, and what came of it. Then a server of its own gets it from as many clients as it has
slots, one after the other, by clients that leave after two seconds. The rows say how long /health
took meanwhile, and before with nothing to do.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median

import httpx

_CLIENTS = 4
_EVERY_SECONDS = 0.01
_START_SECONDS = 120

_ALONE = """
import json, resource, sys, time
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.isolated import document_isolated
data = sys.stdin.buffer.read()
start = time.perf_counter()
try:
    outcome = f"{len(document_isolated(sys.argv[1], data).text):,} characters"
except EdgeInfiniteError as error:
    outcome = f"refused: {error}"
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps({"read_s": round(seconds, 2), "read_mb": round(peak), "outcome": outcome}))
"""
"""Of the children the reader is the only one that takes memory."""

_PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine>{}</spine>
</package>"""
_CONTAINER = """<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>"""


def documents() -> dict[str, tuple[str, bytes]]:
    """Names and contents of documents that cost as much as they can."""
    items = b"<ol>" + b"<li><b>x</b> <sup>2</sup></li>" * 400_000
    wide = f"<table><tr>{'<td colspan=1000>x</td>' * 60_000}</tr></table>"
    return {
        "12 MB of list items": ("a.html", items),
        "16 MB of spaces": ("a.html", b"<pre>" + b" " * (16 << 20) + b"x</pre>"),
        "tags within each other": ("a.html", b"<div>" * 3_000_000),
        "a book of wide cells": ("a.epub", _book(wide, '<itemref idref="a"/>')),
        "a spine of 200,000": ("a.epub", _book("<p>x</p>" * 50, '<itemref idref="a"/>' * 200_000)),
        "a chapter of 60 MB": ("a.epub", _book("<p>x</p>" * 7_500_000, '<itemref idref="a"/>')),
        "a PDF of arrays in arrays": ("a.pdf", b"%PDF-1.7\n1 0 obj\n" + b"[" * 8_000_000),
        "6 MB and a control token": ("a.txt", b"word " * 1_200_000 + b"<|im_end|>"),
        "6 MB of broken UTF-8": ("a.txt", b"ab \xff\xe9" * 1_200_000),
    }


def _book(body: str, spine: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", _CONTAINER)
        book.writestr("a.opf", _PACKAGE.format(spine))
        book.writestr("a.xhtml", f"<html><body>{body}</body></html>")
    return file.getvalue()


@contextmanager
def _served(artifact: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "edgeinfinite", "serve", str(artifact), "--port", str(port)]
    server = subprocess.Popen([*command, "--parallel", str(_CLIENTS)], stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        ends = time.monotonic() + _START_SECONDS
        while True:
            with suppress(httpx.TransportError):
                httpx.get(f"{url}/health", trust_env=False)
                break
            if server.poll() is not None or time.monotonic() > ends:
                sys.exit("the server didn't start")
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait()


def _waits(url: str, seconds: float) -> list[float]:
    """Seconds that /health took, asked again and again on one connection."""
    waits = []
    ends = time.monotonic() + seconds
    with httpx.Client(trust_env=False, timeout=60) as client:
        while time.monotonic() < ends:
            start = time.perf_counter()
            client.get(f"{url}/health").raise_for_status()
            waits.append(time.perf_counter() - start)
            time.sleep(_EVERY_SECONDS)
    return waits


def _row(kind: str, waits: list[float]) -> dict[str, object]:
    ordered = sorted(waits)
    return {
        "document": kind,
        "asked": len(waits),
        "median_ms": round(1000 * median(waits), 1),
        "p99_ms": round(1000 * ordered[len(ordered) * 99 // 100], 1),
        "slowest_ms": round(1000 * ordered[-1], 1),
    }


def _alone(name: str, data: bytes) -> dict[str, object]:
    """Time, peak memory and outcome of reading a document in a process of its own."""
    command = [sys.executable, "-c", _ALONE, name]
    found = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True)
    row: dict[str, object] = json.loads(found.stdout)
    return row


def _post(url: str, name: str, data: bytes, done: Event) -> None:
    """In a process of its own, so that what is sent doesn't hold up who asks for /health."""
    with httpx.Client(trust_env=False, timeout=2) as client:
        while not done.is_set():
            with suppress(httpx.HTTPError):
                client.post(f"{url}/documents?name={name}", content=data)


def main() -> None:
    """Measures, and prints or writes a row for each kind of document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    alone = {kind: _alone(*document) for kind, document in documents().items()}
    with _served(arguments.artifact) as url:
        rows.append(_row("none", _waits(url, arguments.seconds)))
        for kind, (name, data) in documents().items():
            done = multiprocessing.Event()
            clients = [
                multiprocessing.Process(target=_post, args=(url, name, data, done))
                for _ in range(_CLIENTS)
            ]
            for client in clients:
                client.start()
            rows.append(_row(kind, _waits(url, arguments.seconds)) | alone[kind])
            done.set()
            for client in clients:
                client.join()
            print(json.dumps(rows[-1]), flush=True)
    print(json.dumps(rows[0]))
    if arguments.json:
        body = ",\n".join(f" {json.dumps(row)}" for row in rows)
        arguments.json.write_text(f"[\n{body}\n]\n")


if __name__ == "__main__":
    main()
