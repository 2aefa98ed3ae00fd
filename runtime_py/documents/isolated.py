"""Documents read in a process of their own, under limits: a hostile one stops nothing else.

The child has its own interpreter, so that nothing it does holds this one's; limits of processor
time and memory, which the system keeps; and is killed when nobody waits for it any more.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.budget import Budget, too_slow
from edgeinfinite.runtime_py.documents.contents import contents_of
from edgeinfinite.runtime_py.documents.document import Document, document_of
from edgeinfinite.runtime_py.documents.kinds import is_plain

_CHILD = "edgeinfinite.runtime_py.documents.child"
_SMALL = 1 << 18
"""Bytes of UTF-8 text that are read here: no library and no loop runs over them."""

_POLL_SECONDS = 0.05
_START_SECONDS = 10.0


def read_isolated(path: Path) -> Document:
    """`document.read_document` in a process of its own.

    Raises:
        EdgeInfiniteError: as there, or it needs more time or memory than any document does.
        OSError: the file can't be read; the message names it.
    """
    return document_isolated(path.name, contents_of(path))


def document_isolated(name: str, data: bytes) -> Document:
    """`read_isolated` of a file's contents.

    Raises:
        EdgeInfiniteError: as there.
    """
    document = document_unless(lambda: False, name, data)
    assert document is not None
    return document


def document_unless(cancelled: Callable[[], bool], name: str, data: bytes) -> Document | None:
    """`document.document_of` in a process of its own.

    Args:
        cancelled: asked often; True ends the process.
        name: the file's, for its suffix and for errors.
        data: its contents.

    Returns:
        The document; None if it was cancelled.

    Raises:
        EdgeInfiniteError: as `document_of`, or it needs more time or memory than any document does.
    """
    if (len(data) <= _SMALL and is_plain(name, data)) or not sys.executable:
        return document_of(name, data)
    seconds = Budget(name, len(data)).seconds
    head = json.dumps({"name": name, "seconds": seconds}).encode() + b"\n"
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    pipe, child.stdin = child.stdin, None  # `communicate` sends no more after its first timeout
    sender = threading.Thread(target=_send, args=(pipe, head, data), daemon=True)
    sender.start()
    try:
        answer = _answer(child, time.monotonic() + seconds + _START_SECONDS, cancelled)
    except TimeoutError:
        raise too_slow(name, seconds) from None
    finally:
        child.kill()
        child.wait()
        sender.join()
        assert child.stdout is not None
        child.stdout.close()
    return None if answer is None else _document(name, answer)


def _answer(
    child: subprocess.Popen[bytes], ends: float, cancelled: Callable[[], bool]
) -> bytes | None:
    """What the child says, None if it was cancelled.

    Raises:
        TimeoutError: it says nothing in time.
    """
    while not cancelled():
        if time.monotonic() > ends:
            raise TimeoutError
        try:
            return child.communicate(timeout=_POLL_SECONDS)[0]
        except subprocess.TimeoutExpired:
            continue
    return None


def _send(pipe: IO[bytes], *pieces: bytes) -> None:
    with suppress(OSError), pipe:  # it may end before it has read all
        for piece in pieces:
            pipe.write(piece)


def _document(name: str, answer: bytes) -> Document:
    head, newline, text = answer.partition(b"\n")
    if not newline:  # the system has ended it
        raise EdgeInfiniteError(
            f"{name} needs more time or memory to be read than any document does; save it as plain "
            "text"
        )
    fields = json.loads(head)
    if "error" in fields:
        raise EdgeInfiniteError(fields["error"])
    return Document(text=text.decode(), **fields | {"notes": tuple(fields["notes"])})
