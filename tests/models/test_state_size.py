"""`--state-mb`: the largest geometry that fits."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import state_specs
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.geometry_options import CARRY_LENGTHS
from edgeinfinite.models.state_size import StateShape, geometry_within, recall_within
from edgeinfinite.runtime_py.session.state import State

SMOLLM2 = StateShape(30, 3, 64, "float16", True, 8192)
CARRY = Geometry(policy="carry", **CARRY_LENGTHS)


def bytes_of(geometry: Geometry, shape: StateShape) -> int:
    specs = state_specs(
        shape.layers,
        shape.kv_heads,
        geometry.capacities(shape.layers),
        shape.head_dim,
        memory=shape.reads_memory,
        cache_type=shape.cache_type,
        scored={
            layer: geometry.slots_of(layer)
            for layer in range(shape.layers)
            if not geometry.slides(layer)
        },
    )
    return State(specs).nbytes


@given(
    megabytes=st.floats(31, 160),
    cache_type=st.sampled_from(["float32", "float16"]),
    policy=st.sampled_from(["reencode", "carry"]),
    reads_memory=st.booleans(),
)
def test_the_state_is_as_large_as_it_may_be(megabytes, cache_type, policy, reads_memory):
    shape = dataclasses.replace(SMOLLM2, cache_type=cache_type, reads_memory=reads_memory)
    start = CARRY if policy == "carry" else Geometry(sink_length=32, window_length=64)
    geometry = geometry_within(start, megabytes, shape)
    assert bytes_of(geometry, shape) <= megabytes * 1e6
    assert geometry.capacity <= shape.positions
    if policy == "carry":
        more = dataclasses.replace(geometry, recall_slots=geometry.recall_slots + 128)
    else:
        more = dataclasses.replace(geometry, segment_length=geometry.segment_length + 64)
    assert bytes_of(more, shape) > megabytes * 1e6 or more.capacity > shape.positions


GEMMA = StateShape(18, 1, 256, "float16", False, 32768)
"""Gemma 3 270M: 15 of 18 layers see 512 tokens."""
HYBRID = dataclasses.replace(
    CARRY, sliding_windows=tuple(0 if layer in (5, 11, 17) else 512 for layer in range(18))
)


@pytest.mark.parametrize(("megabytes", "segment", "slots"), [(13, 64, 768), (26.7, 128, 4736)])
def test_a_small_state_of_a_hybrid_model_has_shorter_segments(megabytes, segment, slots):
    geometry = recall_within(HYBRID, megabytes, GEMMA)
    assert (geometry.segment_length, geometry.recall_slots) == (segment, slots)


@given(megabytes=st.floats(11.5, 60))
def test_shorter_segments_are_chosen_for_half_as_many_more_recall_slots(megabytes):
    geometry = recall_within(HYBRID, megabytes, GEMMA)
    assert bytes_of(geometry, GEMMA) <= megabytes * 1e6
    halved = dataclasses.replace(HYBRID, segment_length=64)
    shorter = geometry_within(halved, megabytes, GEMMA)
    if geometry == shorter:
        try:
            longer = geometry_within(HYBRID, megabytes, GEMMA).recall_slots
        except EdgeInfiniteError:
            longer = 0
        assert shorter.recall_slots >= 1.5 * longer
    else:
        assert geometry == geometry_within(HYBRID, megabytes, GEMMA)
        assert shorter.recall_slots < 1.5 * max(geometry.recall_slots, 1)


@given(megabytes=st.floats(20, 160))
def test_without_sliding_windows_the_segments_stay(megabytes):
    assert recall_within(CARRY, megabytes, SMOLLM2) == geometry_within(CARRY, megabytes, SMOLLM2)


def test_a_hybrid_s_state_that_is_too_small_is_refused():
    with pytest.raises(EdgeInfiniteError, match="give at least"):
        recall_within(HYBRID, 5.0, GEMMA)


@given(megabytes=st.floats(20, 60), grows=st.sampled_from(["recall_slots", "window_length"]))
def test_what_layers_with_sliding_windows_leave_goes_to_the_others(megabytes, grows):
    geometry = geometry_within(HYBRID, megabytes, GEMMA, grows)
    assert bytes_of(geometry, GEMMA) <= megabytes * 1e6
    assert geometry.capacities(18)[0] == 511 + 128
    step = 128 if grows == "recall_slots" else 64
    more = dataclasses.replace(geometry, **{grows: getattr(geometry, grows) + step})
    assert bytes_of(more, GEMMA) > megabytes * 1e6


@pytest.mark.parametrize("geometry", [CARRY, Geometry()], ids=["carry", "reencode"])
def test_too_few_bytes_are_refused_with_the_least_number(geometry):
    with pytest.raises(EdgeInfiniteError, match="give at least") as refused:
        geometry_within(geometry, 3.0, SMOLLM2)
    least = float(str(refused.value).partition("at least ")[2].split()[0])
    fitting = geometry_within(geometry, least, SMOLLM2)
    assert bytes_of(fitting, SMOLLM2) <= least * 1e6
