"""SIGTERM and SIGINT end a command, also one that is inside a library that never comes back."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from edgeinfinite.runtime_py.answer.generation import Terminated

SECONDS = 8.0
"""After which a signal that the main thread hasn't seen ends the process from outside it."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM raises `Terminated` like Ctrl-C: files stay whole, temporary ones are removed.

    Python sees signals between two of its own steps only. Where the main thread has been in one
    call of a library for `SECONDS` since SIGTERM, or since the second SIGINT (the first one may
    mean an answer, whose chunk takes as long as it takes), the process ends without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, terminate)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(
        target=_watch, args=(ours, threading.get_ident()), name="signals", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        theirs.close()
        watcher.join(1)
        ours.close()
        signal.signal(signal.SIGTERM, previous)


def _watch(signals: socket.socket, main: int) -> None:
    interrupts = 0
    while received := signals.recv(1):
        number = received[0]
        interrupts += number == signal.SIGINT
        if number != signal.SIGTERM and interrupts < 2:
            continue
        place = _place(main)
        if _ends_within(signals, SECONDS):
            return
        if place is not None and _place(main) == place:
            os.write(2, b"\nedgeinfinite: a library doesn't come back; ended without it\n")
            os._exit(128 + number)


def _ends_within(signals: socket.socket, seconds: float) -> bool:
    """Whether the command ends in time, whatever signals come meanwhile."""
    end = time.monotonic() + seconds
    try:
        while (left := end - time.monotonic()) > 0:
            signals.settimeout(left)
            if not signals.recv(1):
                return True
    except TimeoutError:
        pass
    finally:
        signals.settimeout(None)
    return False


def _place(main: int) -> tuple[FrameType, int] | None:
    """Where the main thread is; the same as long as it is in one call."""
    frame = sys._current_frames().get(main)
    return None if frame is None else (frame, frame.f_lasti)
