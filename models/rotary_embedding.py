"""The module that gives a decoder's layers their angles (RoPE), which models name differently."""

from __future__ import annotations

from typing import Any

_NAMES = ("rotary_emb", "pos_emb")
"""Of nearly all; of LFM2's with experts."""


def rotary_embedding(decoder: Any) -> Any:
    """The embedding of all layers of a decoder; None if there is no such module."""
    for name in _NAMES:
        found = getattr(decoder, name, None)
        if found is not None and "Rotary" in type(found).__name__:
            return found
    return getattr(decoder, _NAMES[0], None)
