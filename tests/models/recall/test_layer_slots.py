"""How recall slots are shared out among layers and heads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.models.recall.layer_slots import COPYING_SHARE, slots_by_head, slots_by_layer


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


def test_retrieval_heads_have_a_cache_of_their_own():
    # The first sixth of the heads copies: the others of their layer stay together.
    retrieval, sizes = [(1, 0), (2, 1), (1, 1)], (3, 3)
    streaming = ((512, 0, 0, 1, 2), (512, 2, 0, 2))
    few = slots_by_head(retrieval, *sizes, 1024, 128, 8192)
    assert sorted(few) == sorted([*streaming, (2048, 1, 0), (1280, 1, 1, 2), (2048, 2, 1)])
    many = slots_by_head(retrieval, *sizes, 2048, 128, 8192)
    streaming = ((1152, 0, 0, 1, 2), (1152, 2, 0, 2))
    assert sorted(many) == sorted([*streaming, (3840, 1, 0), (2432, 1, 1, 2), (3840, 2, 1)])


@given(
    layers=st.integers(1, 6),
    kv_heads=st.integers(1, 4),
    rounds=st.integers(0, 80),
    step=st.sampled_from([1, 64, 128]),
    most=st.integers(0, 9000),
    data=st.data(),
)
def test_heads_have_the_average_unless_positions_bind(layers, kv_heads, rounds, step, most, data):
    every = [(layer, head) for layer in range(layers) for head in range(kv_heads)]
    retrieval = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=1))
    caches = slots_by_head(retrieval, layers, kv_heads, rounds * step, step, most)
    of = {(layer, head): slots for slots, layer, *own in caches for head in own}
    assert sorted(of) == every and len(caches) <= 2 * layers
    assert all(slots % step == 0 and 0 <= slots <= most for slots in of.values())
    wanted = min(rounds * step, most // step * step) * len(every)
    assert wanted - kv_heads * step < sum(of.values()) <= wanted
    copying = retrieval[: max(1, round(COPYING_SHARE * len(every)))]
    less = max((of[head] for head in every if head not in retrieval), default=0)
    assert min(of[head] for head in copying) + step > less
