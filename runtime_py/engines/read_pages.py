"""Pages of an artifact's weights that onnxruntime has read go back while it loads a graph.

onnxruntime maps `weights.data` and packs each weight into memory of its own. What it has read stays
in memory until the weight's mapping is closed, so the largest weight is there twice: for Gemma 3
270M, whose embedding is 168 of 263 MB, that made the peak of the whole process. The pages are the
file's own, unchanged: if one is needed again, it comes from the system's cache.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DONT_NEED = 4
"""MADV_DONTNEED of Linux."""

_PAUSE = 0.005
"""Seconds between looks, or longer where a look takes long. 168 MB are packed in 0.2 s."""

_LEAST = 1_000_000
"""Bytes of a mapping that is worth a call."""


@contextmanager
def read_pages_go_back(folder: Path) -> Iterator[None]:
    """While it is open, pages of files in `folder` that were read go back; only on Linux.

    Args:
        folder: the artifact, whose files nobody changes.
    """
    advise = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
    if advise is None:
        yield
        return
    done = threading.Event()
    looks = threading.Thread(target=_give_back, args=(advise, folder, done), daemon=True)
    looks.start()
    try:
        yield
    finally:
        done.set()
        looks.join()


def _give_back(advise: ctypes._CFuncPtr, folder: Path, done: threading.Event) -> None:
    files = tuple(f" {file.resolve()}" for file in folder.iterdir())  # of a hub's cache: links
    pause = _PAUSE
    while not done.wait(pause):
        started = time.perf_counter()
        for start, size in _mappings(files):
            advise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONT_NEED)
        pause = max(_PAUSE, 4 * (time.perf_counter() - started))


def _mappings(files: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Start and size of each large mapping of a file, by what ends its line."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.endswith(files):
            continue
        start, end = (int(part, 16) for part in line.split(maxsplit=1)[0].split("-"))
        if end - start >= _LEAST:
            yield start, end - start
