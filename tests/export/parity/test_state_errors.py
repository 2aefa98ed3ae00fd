"""States that parity goes on from: none of them is read past what its smallest layer holds."""

from __future__ import annotations

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import state_specs
from edgeinfinite.export.parity.state_errors import readable
from edgeinfinite.runtime_py.session.state import State

GEOMETRY = Geometry(
    segment_length=8,
    sink_length=4,
    window_length=12,
    policy="carry",
    recall_slots=(0, 24),
    sliding_windows=(6, 0),
)


def _state(*length: int) -> State:
    capacities = GEOMETRY.capacities(2)
    state = State(state_specs(2, 1, capacities, 2, memory=False))
    for name, array in state.arrays.items():
        if "cache" in name:
            array[...] = np.arange(array.size).reshape(array.shape)
    state.length[:] = length
    return state


def test_a_full_sliding_window_makes_room_in_a_copy() -> None:
    assert GEOMETRY.capacities(2) == [13, 48]
    full = _state(13, 20)
    copied, room = readable(full, GEOMETRY)
    assert room == 8 and copied.length.tolist() == [5, 20] and full.length.tolist() == [13, 20]
    newest = full.slots("k_cache_0", 8, 13)
    np.testing.assert_array_equal(copied.slots("k_cache_0", 0, 5), newest)


def test_the_layer_with_least_room_decides() -> None:
    assert readable(_state(11, 20), GEOMETRY)[1] == 2
    assert readable(_state(7, 47), GEOMETRY)[1] == 1
