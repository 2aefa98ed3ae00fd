"""Notes that commands print beside their output."""

from __future__ import annotations

import sys


def note(sentence: str) -> None:
    """Prints a note on stderr, such as a default that was taken."""
    print(f"note: {sentence}", file=sys.stderr)
