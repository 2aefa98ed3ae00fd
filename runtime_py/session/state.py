"""The state of one text: arrays of fixed size that the host owns (docs/develop/architecture.md).

Letters: L layers, K KV heads, C cache capacity, D head dimension.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from edgeinfinite.artifact.tensors import SCORES, TensorSpec


class State:
    """KV cache, memory and counters. Every array keeps its buffer as long as the state lives.

    Args:
        specs: the state tensors, from the manifest or the torch engine. All start as zeros.

    Attributes:
        arrays: by name. `length [L]` int64 is the number of slots in use in every layer's cache,
            `has_memory [1]` float32 is 0 or 1. Caches are read up to `length` only.
    """

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self.specs = tuple(specs)
        self.arrays = _new_arrays(self.specs)

    @property
    def length(self) -> np.ndarray:
        """Slots in use per layer, `[L]` int64, changed in place."""
        return self.arrays["length"]

    @property
    def has_memory(self) -> np.ndarray:
        """`[1]` float32, 0 before the first compression, then 1; changed in place."""
        return self.arrays["has_memory"]

    def slots(self, name: str, start: int, stop: int) -> np.ndarray:
        """A view of slots `start`..`stop - 1` of a cache, whatever its layout."""
        return self.arrays[name][(slice(None),) * self._slot_axis(name) + (slice(start, stop),)]

    def first_slots(self, name: str, array: np.ndarray, count: int) -> np.ndarray:
        """A view of the first `count` slots of an array in the layout of the cache `name`."""
        return array[(slice(None),) * self._slot_axis(name) + (slice(count),)]

    def _slot_axis(self, name: str) -> int:
        return next(spec for spec in self.specs if spec.name == name).dims.split().index("C")

    def in_use(self, spec: TensorSpec) -> np.ndarray:
        """A view of what counts of a tensor: of a cache the slots in use, else the whole array."""
        if not spec.is_cache or spec.layer is None:
            return self.arrays[spec.name]
        return self.slots(spec.name, 0, int(self.length[spec.layer]))

    def copy(self) -> State:
        """A state with the same content; slots that aren't in use are zeros."""
        copied = State(self.specs)
        for counter in ("length", "has_memory"):  # first: they say how much of a cache is in use
            np.copyto(copied.arrays[counter], self.arrays[counter])
        for spec in self.specs:
            np.copyto(copied.in_use(spec), self.in_use(spec))
        return copied

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the pages that slots in use lie in, at most `nbytes`: what a copy takes."""
        total = 0
        for spec in self.specs:
            array, used = self.arrays[spec.name], self.in_use(spec)
            by_slot = spec.is_cache and spec.layer is not None
            runs = math.prod(array.shape[: self._slot_axis(spec.name)]) if by_slot else 1
            if used.nbytes:
                total += min(array.nbytes, runs * _whole_pages(used.nbytes // runs + mmap.PAGESIZE))
        return total

    @property
    def keeps_scores(self) -> bool:
        """Whether pairs in recall slots have scores. A pair is scored when it leaves the window."""
        return any(spec.role == SCORES for spec in self.specs)

    @property
    def nbytes(self) -> int:
        """Bytes of all state tensors, the same for any length of text."""
        return sum(array.nbytes for array in self.arrays.values())


def _new_arrays(specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """Zeros by name, in pages that the system maps when they are written to.

    Slots that were never written cost no memory then. `np.zeros` promises that only for memory that
    is new: what a freed state leaves in the C library's heap is cleared by writing to all of it.
    One mapping holds all arrays of a state, because a process may have some 65,000 of them only.
    """
    shapes = {spec.name: tuple(int(size) for size in spec.shape) for spec in specs}
    dtypes = {spec.name: np.dtype(spec.dtype) for spec in specs}
    sizes = {name: math.prod(shapes[name]) * dtypes[name].itemsize for name in shapes}
    pages = _mapped(sum(_whole_pages(size) for size in sizes.values()))
    arrays, start = {}, 0
    for name, size in sizes.items():
        flat = np.frombuffer(pages, dtypes[name], math.prod(shapes[name]), start)
        arrays[name] = flat.reshape(shapes[name])
        start += _whole_pages(size)
    return arrays


def _mapped(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, max(1, size))
    pages = mmap.mmap(-1, max(1, size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages


def _whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def state_bytes(specs: Sequence[TensorSpec]) -> int:
    """Bytes of a state with these tensors; allocates nothing."""
    return sum(
        math.prod(int(size) for size in spec.shape) * np.dtype(spec.dtype).itemsize
        for spec in specs
    )
