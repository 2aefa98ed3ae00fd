"""More than one cache in a layer: the same answers where every head has as many slots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, caches_of
from edgeinfinite.models.attention_call import AttentionCall
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.head_groups import attend_by_groups
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session import Session
from tiny import tiny_llama

PLAIN = Geometry(4, 2, 6, "carry", 8)
SPLIT = ((0, 0), (0, 1), (1, 0, 1))


def engine(geometry: Geometry, cache_type: str = "float32") -> TorchEngine:
    """Of a tiny Llama with two layers of two KV heads, and an untrained scorer."""
    model = tiny_llama(layers=2)
    config = EdgeInfiniteConfig(geometry, "none", scorer="untrained", cache_type=cache_type)
    return TorchEngine(attach(model, config))


def logits(session: Session, tokens: list[int]) -> list[np.ndarray]:
    """After every token."""
    return [np.asarray(session.append([token])) for token in tokens]


@pytest.mark.parametrize(
    "caches", [SPLIT, ((0, 1), (0, 0), (1, 0), (1, 1)), ((0, 0, 1), (1, 0, 1))]
)
def test_caches_of_as_many_slots_compute_what_one_does(caches: tuple[tuple[int, ...], ...]) -> None:
    tokens = torch.randint(0, 40, (60,), generator=torch.Generator().manual_seed(1)).tolist()
    whole, apart = (Session(engine(g)) for g in (PLAIN, replace(PLAIN, caches=caches)))
    for ours, theirs in zip(logits(apart, tokens), logits(whole, tokens), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert len(apart.state.length) == len(caches)


@pytest.mark.parametrize("groups", [((0,), (1, 2)), ((1,), (0, 2)), ((2,), (0, 1)), ((0, 1, 2),)])
def test_heads_cut_out_of_rows_are_the_same_heads(groups: tuple[tuple[int, ...], ...]) -> None:
    query, key, value = (torch.randn(2, heads, 5, 4) for heads in (6, 3, 3))
    call = AttentionCall(0, query, key, value, 0.5)
    caches = list(enumerate(groups))

    def attend(part: AttentionCall) -> torch.Tensor:
        assert part.key.shape[1] == len(groups[part.layer])
        seen = (part.key + part.value).repeat_interleave(2, dim=1)
        return part.query + 10 * seen + 100 * part.layer

    expected = query + 10 * (key + value).repeat_interleave(2, dim=1)
    for cache, heads in caches:
        expected[:, [2 * head + i for head in heads for i in range(2)]] += 100 * cache
    for by_rows in (False, True):
        found = attend_by_groups(attend, call, caches, by_rows=by_rows)
        torch.testing.assert_close(found, expected)


def test_each_cache_has_slots_of_its_own() -> None:
    geometry = replace(PLAIN, recall_slots=(0, 16, 8), caches=SPLIT)
    session = Session(engine(geometry))
    session.append(list(range(40)))
    shapes = [session.state.arrays[f"k_cache_{cache}"].shape for cache in range(3)]
    assert shapes == [(1, 1, 12, 8), (1, 1, 28, 8), (1, 2, 20, 8)]
    used = session.state.length.tolist()
    assert used[0] < used[2] < used[1] <= 28 and session.compressions > 0


def test_each_cache_has_the_scorer_of_its_heads() -> None:
    of_layer = caches_of(engine(PLAIN).model)[0].retention_scorer
    first, second, _ = caches_of(engine(replace(PLAIN, caches=SPLIT)).model)
    key, value = torch.randn(2, 2, 5, 8)
    for part in (first, second):
        heads = list(part.heads)
        torch.testing.assert_close(
            part.retention_scorer(key[heads], value[heads]), of_layer(key, value)[heads]
        )


@pytest.mark.parametrize(
    "caches", [((0, 0), (1, 0, 1)), ((0, 0, 1), (0, 1)), ((1, 0, 1), (0, 0, 1)), ((0,), (0, 0, 1))]
)
def test_caches_must_hold_every_head_once(caches: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(EdgeInfiniteError, match="caches"):
        engine(replace(PLAIN, caches=caches))


def test_a_geometry_with_caches_survives_json() -> None:
    geometry = replace(PLAIN, recall_slots=(0, 16, 8), caches=SPLIT)
    assert Geometry.from_dict(geometry.to_dict()) == geometry
    assert GeometryOptions.of(geometry).resolve(scorer=True) == geometry


def test_caches_that_are_whole_layers_are_layers() -> None:
    assert not replace(PLAIN, caches=((0, 0, 1), (1, 0, 1))).shares_layers
