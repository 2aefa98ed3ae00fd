"""A hostile document stops nothing but its own process, which ends with who waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tiny_documents import archive, epub, pdf

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import child, isolated
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.document import document_of
from edgeinfinite.runtime_py.documents.isolated import (
    document_isolated,
    document_unless,
    read_isolated,
)

HOSTILE = b"<ol>" + b"<li>x</li>" * 1_500_000
"""A page that takes many seconds."""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", pdf("Größe 1.", title="A title")),
        ("caf\udce9 ß.epub", epub("<p>süß</p>", "<p>x</p>")),
        ("big.txt", ("Grüße\r\n" * 50_000).encode()),
        ("old.txt", "Grüße aus Köln".encode("cp1252")),
    ],
)
def test_a_document_is_the_same_in_a_process_of_its_own(name: str, data: bytes) -> None:
    assert document_isolated(name, data) == document_of(name, data)


def test_a_refusal_is_the_same_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(archive({"x": "y"}))
    with pytest.raises(EdgeInfiniteError, match=r"^a\.zip is an archive, but neither EPUB nor"):
        read_isolated(file)


def test_a_short_text_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated.subprocess, "Popen", None)
    assert document_isolated("a.md", "Grüße".encode()).text == "Grüße"
    with pytest.raises(TypeError):
        document_isolated("a.html", b"<p>x")


def test_a_process_that_nobody_waits_for_is_ended_at_once() -> None:
    started = time.monotonic()
    assert document_unless(lambda: time.monotonic() - started > 1, "a.html", HOSTILE) is None
    assert time.monotonic() - started < 3
    assert not _children()


def test_other_threads_go_on_while_a_hostile_document_is_read() -> None:
    done = threading.Event()
    thread = threading.Thread(target=document_unless, args=(done.is_set, "a.html", HOSTILE))
    thread.start()
    waits = []
    for _ in range(100):
        before = time.perf_counter()
        time.sleep(0.01)
        waits.append(time.perf_counter() - before - 0.01)
    done.set()
    thread.join()
    assert sorted(waits)[90] < 0.05


def test_a_document_that_takes_too_long_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_START_SECONDS", 0.2)
    monkeypatch.setattr(Budget, "seconds", property(lambda _: 0.2, lambda _, __: None), False)
    with pytest.raises(EdgeInfiniteError, match=r"^a\.html takes more than 0 s to be read"):
        document_isolated("a.html", HOSTILE)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep no limit of memory")
def test_a_document_that_takes_too_much_memory_is_one_sentence() -> None:
    small = "import runpy, edgeinfinite.runtime_py.documents.child as c; c._MOST_MEMORY = 300 << 20"
    asked = b'{"name": "a.html", "seconds": 60}\n' + HOSTILE
    done = subprocess.run(
        [sys.executable, "-c", f"{small}; c.main()"], input=asked, capture_output=True
    )
    assert b"too large to be read" in done.stdout
    assert child._MOST_MEMORY > 1 << 30


def _children() -> list[str]:
    done = subprocess.run(
        ["ps", "-o", "args", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    return [line for line in done.stdout.splitlines() if isolated._CHILD in line]
