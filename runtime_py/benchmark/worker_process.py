"""Measures one case in a process of its own, so that its peak of memory is its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


class WorkerFailed(Exception):
    """The case couldn't be measured; the message says why, for a table."""


def run_worker(
    module: str,
    case: Mapping[str, Any],
    time_limit: float,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Runs a module that reads a case on stdin and writes its row on stdout's last line, as JSON.

    Args:
        module: as `python -m` takes it.
        case: what it reads.
        time_limit: the most seconds that it may take.
        environment: variables beside this process's own.

    Raises:
        WorkerFailed: it took too long, was killed or failed.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(case),
            capture_output=True,
            text=True,
            timeout=time_limit,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"took more than {time_limit:,.0f} s") from None
    if done.returncode < 0:
        raise WorkerFailed(f"was killed by signal {-done.returncode} (out of memory?)")
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise WorkerFailed(f"failed: {last[:300]}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row
