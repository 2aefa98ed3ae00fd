"""The process that reads one document for `isolated`: name and bytes in, fields and text out."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import document_of

_MOST_MEMORY = 2 << 30
"""Bytes of address space. A PDF of 60 MB takes less."""


def main() -> None:
    """Reads standard input, and writes the document or the one line that refuses it."""
    head, _, data = sys.stdin.buffer.read().partition(b"\n")
    asked = json.loads(head)
    _limit(asked["seconds"])
    text = ""
    answer: dict[str, Any]
    try:
        answer = asdict(document_of(asked["name"], data))
        text = answer.pop("text")
    except EdgeInfiniteError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"{asked['name']} is too large to be read; save it as plain text"}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + text.encode())
    sys.stdout.buffer.flush()


def _limit(seconds: float) -> None:
    """Limits that the system keeps, where it has them: also if the parent was killed."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    os.nice(5)
    whole = int(seconds) + 1
    for kind, most in (
        (resource.RLIMIT_CPU, whole),
        (resource.RLIMIT_AS, _MOST_MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        try:
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))
        except (OSError, ValueError):  # a system that doesn't keep this one
            continue


if __name__ == "__main__":
    main()
