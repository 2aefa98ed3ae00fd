"""Memory that a state takes from the system."""

from __future__ import annotations

import mmap
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeinfinite.artifact.tensors import TensorSpec
from edgeinfinite.runtime_py.session.state import State

CACHE = TensorSpec("k_cache_0", "float16", (1, 3, 4096, 64), "1 K C D", "k_cache", 0)
HAS_MEMORY = TensorSpec("has_memory", "float32", (1,), "1", "has_memory")


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_slots_that_were_never_written_take_no_memory_even_after_states_were_freed() -> None:
    for _ in range(3):  # full states, which leave their memory to the next ones
        full = State([CACHE])
        full.arrays[CACHE.name][...] = 1
        del full
    before = resident()
    states = [State([CACHE]) for _ in range(60)]
    for state in states:
        state.arrays[CACHE.name][:, :, :8] = 1
    assert resident() - before < 3e6, "60 states of 1.5 MB, 3 KB of each in use"
    assert all(np.count_nonzero(s.arrays[CACHE.name]) == 3 * 8 * 64 for s in states)


def test_what_a_state_takes_counts_the_pages_that_its_slots_lie_in() -> None:
    specs = [CACHE, TensorSpec("length", "int64", (1,), "L", "length"), HAS_MEMORY]
    state = State(specs)
    empty = state.bytes_in_memory
    assert 0 < empty < 4 * mmap.PAGESIZE
    state.length[:] = 8  # 1 KB for each of three heads
    few = state.bytes_in_memory
    assert few - empty <= 3 * 2 * mmap.PAGESIZE
    state.length[:] = 4096
    assert few < state.bytes_in_memory <= state.nbytes


def test_thousands_of_states_fit_what_a_process_may_map() -> None:
    """Linux allows 65,530 mappings; one for each array would be too many for a server."""
    small = replace(CACHE, shape=(1, 3, 256, 64))
    specs = [replace(small, name=f"k_cache_{i}", layer=i) for i in range(20)]
    states = [State(specs) for _ in range(4000)]
    assert all(state.nbytes == 20 * 98_304 for state in states)
