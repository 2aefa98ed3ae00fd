"""Token ids as an array, made piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

TokenIds: TypeAlias = Sequence[int] | np.ndarray
"""Ids `[T]`; an array is of int64."""

_PIECE = 1 << 15
"""Ids converted in one call, which holds the interpreter: 40 ms for a million of them."""


def token_array(tokens: TokenIds) -> np.ndarray:
    """Token ids as an array, int64 `[T]`; an array of int64 as it is."""
    if isinstance(tokens, np.ndarray) or len(tokens) <= _PIECE:
        return np.asarray(tokens, dtype=np.int64).reshape(-1)
    ids = np.empty(len(tokens), np.int64)
    for start in range(0, len(tokens), _PIECE):
        ids[start : start + _PIECE] = tokens[start : start + _PIECE]
    return ids
