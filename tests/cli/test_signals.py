"""Signals end a command, also one that is inside a library that never comes back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

STUCK = """
import hashlib, signal
from edgeinfinite.cli import signals
signal.signal(signal.SIGINT, signal.default_int_handler)
signals.SECONDS = 0.5
with signals.ended_by_signals():
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1)
"""
WAITS = """
import sys, time
from edgeinfinite.cli import signals
from edgeinfinite.runtime_py.answer.generation import Terminated
signals.SECONDS = 0.3
try:
    with signals.ended_by_signals():
        print("begun", flush=True)
        time.sleep(60)
except Terminated:
    time.sleep(0.6)
    sys.exit(7)
"""


def begun(code: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    time.sleep(0.2)
    return process


@pytest.mark.parametrize(
    ("numbers", "code"), [([signal.SIGTERM], 143), ([signal.SIGINT, signal.SIGINT], 130)]
)
def test_a_library_that_does_not_come_back_is_left(numbers: list[int], code: int) -> None:
    process = begun(STUCK)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.2)
    _, said = process.communicate(timeout=20)
    assert process.returncode == code
    assert said == "\nedgeinfinite: a library doesn't come back; ended without it\n"


def test_a_command_that_sees_the_signal_ends_by_itself() -> None:
    process = begun(WAITS)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 7
