"""glibc keeps freed memory for later; while onnxruntime loads a graph it must give it back.

onnxruntime puts codes of 5 and 6 bits together while it loads (the export's `narrow_codes.py`) and
frees what that took, in pieces of a megabyte. glibc takes such pieces from its heap, where they
stay: Gemma 3 270M held 650 MB after loading, and 424 MB with pieces mapped one by one. Other
allocators, Android's among them, map such pieces anyway.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""

_SMALL = 64 * 1024
_LARGE = 1024 * 1024
"""glibc's own threshold grows to 32 MiB once such a piece is freed. Then what a compression needs
for a moment comes from the heap, in sizes that differ, and the heap's gaps grow: a process that had
read 100,000 tokens with SmolLM2-135M under `reencode` held 97 MiB of them. With 1 MiB it held 8
after 40,000 (32 MiB: 58), and decodes and reads as fast."""


@contextmanager
def freed_memory_goes_back() -> Iterator[None]:
    """While it is open, freed memory goes back to the system; elsewhere than on glibc nothing."""
    set_option = _function("mallopt")
    if set_option is None:
        yield
        return
    set_option(_MMAP_THRESHOLD, _SMALL)
    try:
        yield
    finally:
        set_option(_MMAP_THRESHOLD, _LARGE)
        set_option(_TRIM_THRESHOLD, 2 * _LARGE)


def give_back_freed() -> None:
    """Gives the system back what is free in glibc's heap; elsewhere than on glibc nothing."""
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def _function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
