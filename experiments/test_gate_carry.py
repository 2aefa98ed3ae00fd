"""Training through sessions of policy `carry`: what is learnt from is what a session computes."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.attach import attention_layers, gate_parameters
from edgeinfinite.models.checkpoint.loading import parameters_digest
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.training.gate.loss import cross_entropy, watch_teacher
from gate_carry import (
    CarriedState,
    Course,
    read_carried,
    train_through_sessions,
)
from tiny import assert_close, attached, random_tokens

GEOMETRY = Geometry(8, 4, 6, policy="carry", recall_slots=(8, 24))
TOKENS = 4 + 6 + 8 * 8 + 1


def model(**more):
    return attached(GEOMETRY, feature_map="learned", opening="place", **more)


@pytest.mark.parametrize("course", [Course(1, 1), Course(3, 1), Course(2, 2)])
def test_a_training_segment_equals_a_sessions(course):
    """The same logits, caches, M and z as the reference engine's, with every grouping."""
    carried, tokens = model(), random_tokens(TOKENS)
    state = CarriedState(carried)
    parts = list(read_carried(carried, torch.tensor(tokens), state, course, 1))
    assert len(parts) == sum(
        i // course.together % course.every == 1 % course.every for i in range(7)
    )
    session = Session(TorchEngine(carried))
    at = {}
    for index, token in enumerate(tokens[:-1]):
        at[index + 1] = session.append([token])
    for part in parts:
        expected = [at[place] for place in range(part.places.start, part.places.stop)]
        assert_close(part.logits.detach(), expected)
    session._policy.compress(session)  # a session waits for the next token
    assert_close(state.memory.detach(), session.state.arrays["memory"])
    assert_close(state.memory_norm.detach(), session.state.arrays["memory_norm"])
    assert state.length.tolist() == session.state.length.tolist()


def test_the_gates_gradient_equals_finite_differences():
    """Of two segments that share a step, against finite differences; the maps' included."""
    carried = model()
    tokens = torch.tensor(random_tokens(4 + 6 + 8 * 3 + 1))
    gates = gate_parameters(carried)

    def loss() -> torch.Tensor:
        parts = read_carried(carried, tokens, CarriedState(carried), Course(2, 1))
        return torch.stack([cross_entropy(p.logits, tokens[p.places]) for p in parts]).sum()

    # The pairs in the cache count as constants: only the last layer's own gate leaves them alone.
    last = list(attention_layers(carried)[-1].memory_gate.parameters())
    loss().backward()
    found = [p.grad.clone() for p in last]
    assert all(p.grad is not None for p in gates)
    assert all(float(g.abs().max()) > 0 for g in found)
    scale = torch.sqrt(sum((g * g).sum() for g in found))

    def loss_at(step: float) -> float:
        for p, g in zip(last, found, strict=True):
            p.data += step * g / scale
        with torch.no_grad():
            value = float(loss())
        for p, g in zip(last, found, strict=True):
            p.data -= step * g / scale
        return value

    measured = (loss_at(1e-3) - loss_at(-1e-3)) / 2e-3
    assert measured == pytest.approx(float(scale), rel=0.02)


@pytest.mark.parametrize("reads", ["own", "zero"])
def test_training_lowers_the_divergence_and_leaves_the_backbone(reads):
    carried = model(open_gates=False)
    before = parameters_digest(carried, gates=False)
    tokens = torch.tensor(random_tokens(TOKENS))
    teacher, course = watch_teacher(carried, tokens), Course(2, 1)
    rows = train_through_sessions(
        carried,
        [tokens] * 12,
        [teacher] * 12,
        course,
        reads=reads,
        rates=(0.02, 0.1),
        progress=lambda what, done: None,
    )
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) == 12 * course.steps(GEOMETRY, TOKENS, 0)
    text = len(rows) // 12
    first, last = (sum(row["loss"] for row in part) for part in (rows[:text], rows[-text:]))
    assert last < 0.9 * first
    assert parameters_digest(carried, gates=False) == before
    if reads == "zero":  # nothing was read: the feature maps learn nothing
        for layer in attention_layers(carried):
            assert torch.equal(layer.memory_gate.feature_map.bias, torch.zeros(2, 1, 8))
