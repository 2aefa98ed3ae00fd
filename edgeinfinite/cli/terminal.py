"""What the terminal can show, by the variables that every program heeds."""

from __future__ import annotations

import os
import sys


def is_dumb() -> bool:
    """Whether the terminal knows no escape codes at all."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def dimmed(text: str) -> str:
    """The text in a fainter colour, unless the user or the terminal wants none (no-color.org)."""
    if os.environ.get("NO_COLOR") or is_dumb():
        return text
    return f"\033[2m{text}\033[0m"


def escape_unencodable() -> None:
    r"""What standard output's encoding lacks, such as names that aren't UTF-8, is shown as `\udce9`
    instead of ending the program.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and getattr(stream, "errors", None) == "strict":
            reconfigure(errors="backslashreplace")
