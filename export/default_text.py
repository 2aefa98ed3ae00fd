"""The texts that weights are rounded by, and that their loss is measured on.

By default that is an English text that is everywhere: Python's own language reference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeinfinite.files import read_text_file

DEFAULT = "default"
"""What `--calibrate` calls it."""

_BYTES_PER_TOKEN = 16
"""Enough of a text to make tokens of."""

_KEPT = 0.75
"""Of a text for calibration; the loss is measured on the rest."""


def chosen_text(asked: str | None) -> tuple[str, str]:
    """A text's part for calibration and its held-out part.

    Args:
        asked: a UTF-8 file, `default`, or None for that as well.
    """
    named = asked is not None and asked != DEFAULT
    text = read_text_file(Path(asked or "")) if named else default_text()
    cut = int(_KEPT * len(text))
    return text[:cut], text[cut:]


def first_tokens(tokenizer: Any, text: str, count: int) -> list[int]:
    """The first `count` token ids of a text, without making tokens of all of it."""
    ids: list[int] = tokenizer(text[: _BYTES_PER_TOKEN * count])["input_ids"]
    return ids[:count]


def default_text() -> str:
    """Some 200,000 characters."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))[:200_000]
