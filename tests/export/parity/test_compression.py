"""Compressions compared: another choice is an error, one between pairs of the same rank isn't."""

from __future__ import annotations

import numpy as np
import pytest

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.export.parity.compression import CompressionParity
from edgeinfinite.export.parity.state_errors import copy_state
from edgeinfinite.models.configuration import NO_GATE
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import State
from tiny import VOCABULARY, attached

GEOMETRY = Geometry(
    sink_length=4, segment_length=8, window_length=12, policy="carry", recall_slots=16
)


class Prefers(TorchEngine):
    """Gives one pair of the first layer's first head a greater score before it compresses."""

    by = 0.0
    slot = 0

    def compress_memory(self, state: State) -> None:
        state.arrays["scores_0"][0, 0, self.slot] += self.by
        super().compress_memory(state)


@pytest.fixture
def engine() -> Prefers:
    return Prefers(attached(GEOMETRY, gate=NO_GATE))


@pytest.fixture
def full(engine: Prefers) -> State:
    """A state whose slots are all in use, right before a compression."""
    session = Session(engine)
    tokens = iter(np.random.default_rng(0).integers(3, VOCABULARY, 200).tolist())
    while session.compressions < 4 or session.cached < GEOMETRY.capacity:
        session.append([next(tokens)])
    return session.state


def copied(engine: TorchEngine, state: State) -> State:
    copy = engine.new_state()
    copy_state(state, copy)
    return copy


def scores_left(engine: Prefers, state: State, by: float) -> np.ndarray:
    engine.by = by
    copy = copied(engine, state)
    engine.compress_memory(copy)
    engine.by = 0.0
    return copy.arrays["scores_0"][0, 0]


def least_preference(engine: Prefers, state: State) -> float:
    """What the score of a slot that is dropped lacks, to a few millionths."""
    before = state.arrays["scores_0"][0, 0]
    left = scores_left(engine, state, 0.0)
    engine.slot = next(i for i, score in enumerate(before) if score not in left)
    least, most = 0.0, 100.0
    while most - least > 2e-6:
        middle = (least + most) / 2
        kept = np.float32(before[engine.slot] + middle) in scores_left(engine, state, middle)
        least, most = (least, middle) if kept else (middle, most)
    return least


def test_equal_compressions_have_no_error(engine, full):
    errors = CompressionParity(engine, engine).compress(full)
    assert sorted(errors) == ["k_cache", "scores", "v_cache"]
    assert errors["k_cache"] == errors["v_cache"] == errors["scores"] == [0.0, 0.0]


def test_either_of_two_pairs_of_nearly_one_rank_may_stay(engine, full):
    least = least_preference(engine, full)
    full.arrays["scores_0"][0, 0, engine.slot] += least
    subject = Prefers(engine.model)
    subject.slot, subject.by = engine.slot, 4e-6
    plain, other = copied(engine, full), copied(engine, full)
    engine.compress_memory(plain)
    subject.compress_memory(other)
    difference = np.abs(plain.arrays["k_cache_0"] - other.arrays["k_cache_0"]).max()
    assert difference > 0.1, "the text has no tie any more: choose another"
    errors = CompressionParity(subject, engine).compress(full)
    assert max(*errors["k_cache"], *errors["v_cache"], *errors["scores"]) < 1e-4


def test_another_choice_is_an_error(engine, full):
    subject = Prefers(engine.model)
    least = least_preference(engine, full)
    subject.slot, subject.by = engine.slot, least + 0.01
    errors = CompressionParity(subject, engine).compress(full)
    assert errors["k_cache"][0] > 0.01 and errors["v_cache"][0] > 0.01
    assert errors["k_cache"][1] == errors["v_cache"][1] == 0.0
