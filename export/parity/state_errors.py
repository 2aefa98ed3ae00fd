"""Errors between two states of one geometry, whose axes may be in different orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import Role, TensorSpec
from edgeinfinite.runtime_py.session.policies import make_room
from edgeinfinite.runtime_py.session.state import State


def copy_state(source: State, target: State) -> None:
    """Copies a state between engines; of the caches it copies only the slots in use."""
    old, new = _caches(source), _caches(target)
    for name, array in target.arrays.items():
        if name not in new and name in source.arrays:
            array[...] = source.arrays[name]
    for name, (spec, cache) in new.items():
        slots = int(source.length[_layer(spec)])
        cache[:, :, :slots] = old[name][1][:, :, :slots]


def readable(state: State, geometry: Geometry) -> tuple[State, int]:
    """A copy of a state in which no sliding window is full, and how many tokens it has room for."""
    copied = State(state.specs)
    copy_state(state, copied)
    make_room(copied, geometry)
    capacities = geometry.capacities(len(copied.length))
    return copied, int(np.min(capacities - copied.length))


def cache_errors(role: Role, state: State, wanted: State, slots: Sequence[slice]) -> list[float]:
    """Relative errors of a cache, one per layer.

    Args:
        role: `k_cache` or `v_cache`.
        state, wanted: the caches may have their axes in another order.
        slots: the slots of every layer to compare.
    """
    expected = _caches(wanted)
    return [
        relative_error(cache[:, :, used], expected[name][1][:, :, used])
        for name, (spec, cache) in _caches(state).items()
        if spec.role == role
        for used in [slots[_layer(spec)]]
    ]


def tensor_errors(role: Role, state: State, wanted: State) -> list[float]:
    """Relative errors of the whole tensors of a role, one per layer; none where there is none."""
    return [
        relative_error(state.arrays[spec.name], wanted.arrays[spec.name])
        for spec in state.specs
        if spec.role == role
    ]


def relative_error(value: np.ndarray, wanted: np.ndarray) -> float:
    """‖value - wanted‖ / ‖wanted‖; 0 for two zeros, NaN for any NaN."""
    value, wanted = value.astype(np.float32), wanted.astype(np.float32)
    difference = float(np.linalg.norm(value - wanted))
    size = float(np.linalg.norm(wanted))
    return difference if difference == 0 or np.isnan(difference) else difference / max(size, 1e-30)


def _caches(state: State) -> dict[str, tuple[TensorSpec, np.ndarray]]:
    """The caches' specs by name, and views of the caches with the axes `B K C D`."""
    return {
        spec.name: (
            spec,
            state.arrays[spec.name].transpose([spec.dims.split().index(a) for a in "BKCD"]),
        )
        for spec in state.specs
        if spec.is_cache
    }


def _layer(spec: TensorSpec) -> int:
    assert spec.layer is not None
    return spec.layer
