"""Test processes that compute side by side keep to CPUs of their own.

ONNX Runtime and torch take a thread for each CPU that a process may use, and their threads wait for
each other: of two processes on two CPUs, each waited for threads that the other held up.
"""

from __future__ import annotations

import os
from typing import Any


def keep_to_share(number: int, count: int) -> None:
    """Keeps this process, and what it starts, to its share of the CPUs; before torch counts them.

    Args:
        number: the process's, from 0.
        count: of processes.
    """
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[number % len(usable) :: count])


def keep_to_next_share(started: Any, count: int) -> None:
    """The same for a process of a pool.

    Args:
        started: a value that the processes share, 0 at first.
    """
    with started.get_lock():
        number, started.value = started.value, started.value + 1
    keep_to_share(number, count)
