"""Putting into the caches what `compress_memory` computed under policy `carry` (DESIGN §2b).

Letters: S sinks, G recall slots, W window.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.runtime_py.state import State


def carried_names(part: str, layer: int) -> tuple[str, str]:
    """Names of the graph's outputs for one layer, K's and V's; `part` is `recall` or `window`."""
    return f"k_{part}_{layer}", f"v_{part}_{layer}"


def place_carried(state: State, geometry: Geometry, outputs: Mapping[str, np.ndarray]) -> None:
    """Copies recall slots and window to their places, behind the sinks; no slot is left between.

    Args:
        state: as it was when the graph was run; its caches are changed, its `length` is not.
        geometry: S, G, W.
        outputs: by name; `[1, K, G, D]` and `[1, K, W, D]`, or in the caches' own layout. Of the
            recall slots only those that there are candidates for count.
    """
    sinks, window = geometry.sink_length, geometry.window_length
    for layer, length in enumerate(state.length):
        kept = min(geometry.slots_of(layer), int(length) - sinks - window)
        recall = zip(carried_names("recall", layer), "kv", strict=True)
        for name, kind in recall if kept else ():
            slots = state.slots(f"{kind}_cache_{layer}", sinks, sinks + kept)
            slots[...] = state.first_slots(f"{kind}_cache_{layer}", outputs[name], kept)
        for name, kind in zip(carried_names("window", layer), "kv", strict=True):
            start = sinks + kept
            state.slots(f"{kind}_cache_{layer}", start, start + window)[...] = outputs[name]
