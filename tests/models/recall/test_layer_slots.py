"""How recall slots are shared out among layers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.models.recall.layer_slots import slots_by_layer


def test_retrieval_layers_share_what_the_others_leave():
    assert slots_by_layer([2, 0], 4, 4, 1, 100) == (6, 2, 6, 2)
    assert slots_by_layer([2], 4, 256, 128, 4096) == (128, 128, 640, 128)
    assert slots_by_layer([2, 0], 3, 512, 128, 4096) == (640, 256, 640)
    assert slots_by_layer([2, 0, 1], 4, 5, 1, 100) == (6, 6, 6, 2)
    assert slots_by_layer([2, 0, 1], 4, 4, 1, 5) == (5, 4, 5, 2)


@given(
    layers=st.integers(1, 12),
    rounds=st.integers(0, 20),
    step=st.sampled_from([1, 64, 128]),
    most=st.integers(0, 4000),
    data=st.data(),
)
def test_the_average_is_kept_unless_positions_bind(layers, rounds, step, most, data):
    recalling = data.draw(st.lists(st.integers(0, layers - 1), unique=True))
    slots = slots_by_layer(recalling, layers, rounds * step, step, most)
    assert len(slots) == layers and all(g % step == 0 and 0 <= g <= most for g in slots)
    room = layers * (most // step * step)
    assert sum(slots) == min(layers * rounds * step, room)
    if recalling:
        others = [slots[i] for i in range(layers) if i not in recalling]
        assert min(slots[i] for i in recalling) >= max(others, default=0)
        assert max(slots[i] for i in recalling) <= min(slots[i] for i in recalling) + step
