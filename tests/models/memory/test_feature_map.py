"""Properties of every σ, and the initial learned one."""

from __future__ import annotations

import pytest
import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.configuration import FEATURE_MAPS, EdgeInfiniteConfig
from edgeinfinite.models.memory.compressive import compress, retrieve
from edgeinfinite.models.memory.feature_map import FeatureMap


def random_map(name: str) -> FeatureMap:
    torch.manual_seed(0)
    made = FeatureMap(name, kv_heads=2, head_dim=8)
    for tensor in made.parameters():
        torch.nn.init.normal_(tensor)
    return made


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_features_are_positive_and_reads_are_finite_for_any_input(name):
    feature_map = random_map(name)
    for size in (0.0, 1.0, 80.0, 1e4, 1e15):
        key, value, query = (torch.randn(heads, 11, 8) for heads in (2, 2, 6))
        features = feature_map(size * key)
        assert (features >= 0).all() and features.isfinite().all()
        empty = torch.zeros(2, 8, 8), torch.zeros(2, 8)
        sums = compress(size * key, value, *empty, feature_map)
        read = retrieve(size * query[None], *sums, feature_map)
        assert read.isfinite().all()
        if size:  # a mean of values, whatever their weights
            assert read.abs().max() <= value.abs().max() * (1 + 1e-4)


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_any_split_of_a_segment_gives_the_same_memory(name):
    feature_map = random_map(name)
    key, value = torch.randn(2, 10, 8), torch.randn(2, 10, 8)
    empty = torch.zeros(2, 8, 8), torch.zeros(2, 8)
    once = compress(key, value, *empty, feature_map)
    first = compress(key[:, :4], value[:, :4], *empty, feature_map)
    parts = compress(key[:, 4:], value[:, 4:], *first, feature_map)
    for a, b in zip(once, parts, strict=True):
        torch.testing.assert_close(a, b)


def test_a_learned_one_begins_as_softmax_and_every_kv_head_has_its_own():
    x = torch.randn(2, 5, 8)
    learned = FeatureMap("learned", kv_heads=2, head_dim=8)
    torch.testing.assert_close(learned(x), FeatureMap("softmax")(x))
    learned.weight.data[1] *= 2
    assert torch.equal(learned(x)[0], FeatureMap("softmax")(x)[0])
    torch.testing.assert_close(learned(x)[1], FeatureMap("softmax")(2 * x)[1])


def test_unknown_names_are_refused():
    with pytest.raises(EdgeInfiniteError, match="feature map 'relu'; choose one of elu, softmax"):
        FeatureMap("relu")
    with pytest.raises(EdgeInfiniteError, match="unknown feature map 'relu'"):
        EdgeInfiniteConfig(feature_map="relu")
    with pytest.raises(EdgeInfiniteError, match="unknown opening 'wide'"):
        EdgeInfiniteConfig(opening="wide")
