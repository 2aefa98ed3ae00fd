"""The `--json` file that all commands write: rows, and the machine they were measured on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeinfinite.files import write_atomically
from edgeinfinite.version import __version__


def machine() -> dict[str, Any]:
    """The machine that the figures were measured on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def write_rows(
    path: Path,
    command: str,
    rows: Sequence[dict[str, Any]],
    *,
    options: dict[str, Any] | None = None,
) -> None:
    """Writes `{"command", "version", "machine", "rows"}`, whole or not at all.

    Args:
        path: an existing file is replaced.
        command: such as `generate`.
        rows: flat mappings, which pandas reads directly.
        options: the options that the rows depend on, for commands that can resume from a file.

    Raises:
        OSError: the file can't be written.
    """
    document = {
        "command": command,
        "version": __version__,
        "machine": machine(),
        **({} if options is None else {"options": options}),
        "rows": list(rows),
    }
    text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    write_atomically(path, text)
