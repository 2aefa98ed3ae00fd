"""Writes the outputs of `compress_memory` into the caches under policy `carry`.

Letters: S sinks, G recall slots, W window.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import CACHES, RECALL_PARTS, WINDOW_PARTS, tensor_name
from edgeinfinite.runtime_py.session.state import State


def keep_newest(state: State, layer: int, count: int) -> None:
    """Moves the newest `count` tokens of a layer with a sliding window to its first slots.

    Their positions stay, so their keys do too.

    Args:
        state: the layer's caches are changed, and its `length`.
        layer: which one.
        count: no more than are in use.
    """
    length = int(state.length[layer])
    for cache in CACHES:
        name = tensor_name(cache, layer)
        newest = state.slots(name, length - count, length).copy()  # the ranges may overlap
        state.slots(name, 0, count)[...] = newest
    state.length[layer] = count


def place_carried(state: State, geometry: Geometry, outputs: Mapping[str, np.ndarray]) -> None:
    """Copies the recall slots and then the window right behind the sinks, without a gap.

    Args:
        state: the state that the graph was run on. Its caches are changed, its `length` is not.
        geometry: gives S, G and W.
        outputs: the graph's outputs by name, `[1, K, G, D]` and `[1, K, W, D]`, or in the caches'
            own layout. If there are fewer candidates than recall slots, the slots beyond the
            number of candidates are ignored. Of a layer with a sliding window as many of its
            window's other tokens as there are.
    """
    sinks, window = geometry.sink_length, geometry.window_length
    for layer, length in enumerate(state.length):
        if geometry.slides(layer):
            count = min(geometry.kept_of(layer), int(length))
            for cache, moved in zip(CACHES, WINDOW_PARTS, strict=True):
                name = tensor_name(cache, layer)
                newest = state.first_slots(name, outputs[tensor_name(moved, layer)], count)
                state.slots(name, 0, count)[...] = newest
            continue
        kept = min(geometry.slots_of(layer), int(length) - sinks - window)
        for cache, recall, moved in zip(CACHES, RECALL_PARTS, WINDOW_PARTS, strict=True):
            name = tensor_name(cache, layer)
            if kept:
                kept_pairs = outputs[tensor_name(recall, layer)]
                slots = state.slots(name, sinks, sinks + kept)
                slots[...] = state.first_slots(name, kept_pairs, kept)
            start = sinks + kept
            slots = state.slots(name, start, start + window)
            slots[...] = outputs[tensor_name(moved, layer)]
