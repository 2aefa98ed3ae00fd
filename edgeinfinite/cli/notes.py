"""What commands tell beside their output."""

from __future__ import annotations

import sys


def note(sentence: str) -> None:
    """Tells the user about a default that was taken, on stderr."""
    print(f"note: {sentence}", file=sys.stderr)
