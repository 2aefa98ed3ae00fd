"""How far two states of one geometry are apart, whatever the order of their axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeinfinite.runtime_py.state import State


def copy_state(source: State, target: State) -> None:
    """Copies a state between engines; of the caches the slots in use only."""
    for name, array in target.arrays.items():
        if "_cache_" not in name and name in source.arrays:
            array[...] = source.arrays[name]
    old, new = _caches(source), _caches(target)
    for name, cache in new.items():
        slots = int(source.length[layer_of(name)])
        cache[:, :, :slots] = old[name][:, :, :slots]


def cache_errors(kind: str, state: State, wanted: State, slots: Sequence[slice]) -> list[float]:
    """By layer.

    Args:
        kind: `k_cache` or `v_cache`.
        state, wanted: the caches may have their axes in another order.
        slots: which to compare, of every layer.
    """
    expected = _caches(wanted)
    return [
        relative_error(array[:, :, slots[layer]], expected[name][:, :, slots[layer]])
        for name, array in _caches(state).items()
        if name.startswith(kind)
        for layer in [layer_of(name)]
    ]


def relative_error(value: np.ndarray, wanted: np.ndarray) -> float:
    """‖value - wanted‖ / ‖wanted‖; 0 for two zeros, NaN for any NaN."""
    value, wanted = value.astype(np.float32), wanted.astype(np.float32)
    difference = float(np.linalg.norm(value - wanted))
    size = float(np.linalg.norm(wanted))
    return difference if difference == 0 or np.isnan(difference) else difference / max(size, 1e-30)


def layer_of(name: str) -> int:
    """Of a tensor of one layer, as `k_cache_7`."""
    return int(name.rpartition("_")[2])


def _caches(state: State) -> dict[str, np.ndarray]:
    """Views of the caches with the axes `B K C D`."""
    return {
        spec.name: state.arrays[spec.name].transpose([spec.dims.split().index(a) for a in "BKCD"])
        for spec in state.specs
        if "_cache_" in spec.name
    }
