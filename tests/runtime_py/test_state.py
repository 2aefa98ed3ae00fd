"""Memory that a state takes from the system."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from edgeinfinite.artifact.tensors import TensorSpec
from edgeinfinite.runtime_py.state import State

CACHE = TensorSpec("k_cache_0", "float16", (1, 3, 4096, 64), "1 K C D", "k_cache", 0)


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
