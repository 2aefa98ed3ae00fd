"""Eq. 5-7, and which query head reads which KV head."""

from __future__ import annotations

import pytest
import torch
from transformers.models.llama.modeling_llama import repeat_kv

from edgeinfinite.models.memory.compressive import compress, retrieve
from edgeinfinite.models.memory.feature_map import elu_features


@pytest.mark.parametrize("groups", [1, 3, 8])
def test_retrieval_equals_the_equations_with_heads_paired_as_repeat_kv(groups):
    torch.manual_seed(0)
    kv_heads, dim, tokens = 2, 8, 5
    key, value = torch.randn(kv_heads, 11, dim), torch.randn(kv_heads, 11, dim)
    query = torch.randn(1, kv_heads * groups, tokens, dim)
    memory, norm = compress(key, value, torch.zeros(kv_heads, dim, dim), torch.zeros(kv_heads, dim))
    keys, values = repeat_kv(key[None], groups)[0], repeat_kv(value[None], groups)[0]
    weights = elu_features(query[0]) @ elu_features(keys).transpose(1, 2)
    expected = weights @ values / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(retrieve(query, memory, norm)[0], expected, rtol=1e-4, atol=1e-5)


def test_an_empty_memory_reads_as_zero():
    read = retrieve(torch.randn(1, 4, 3, 8), torch.zeros(2, 8, 8), torch.zeros(2, 8))
    assert torch.equal(read, torch.zeros(1, 4, 3, 8))


def test_scaling_m_and_z_together_changes_nothing():
    torch.manual_seed(0)
    memory, norm = compress(
        torch.randn(2, 50, 8), torch.randn(2, 50, 8), torch.zeros(2, 8, 8), torch.zeros(2, 8)
    )
    query = torch.randn(1, 4, 3, 8)
    torch.testing.assert_close(
        retrieve(query, memory / 50, norm / 50), retrieve(query, memory, norm), rtol=1e-4, atol=1e-5
    )


def test_compressing_in_two_parts_equals_compressing_at_once_and_changes_no_argument():
    torch.manual_seed(0)
    key, value = torch.randn(2, 10, 8), torch.randn(2, 10, 8)
    empty = torch.zeros(2, 8, 8), torch.zeros(2, 8)
    once = compress(key, value, *empty)
    parts = compress(key[:, 4:], value[:, 4:], *compress(key[:, :4], value[:, :4], *empty))
    for a, b in zip(once, parts, strict=True):
        torch.testing.assert_close(a, b)
    assert not empty[0].any() and not empty[1].any()


def test_the_memory_stays_float32_for_half_precision_keys():
    memory, norm = compress(
        torch.randn(2, 10, 8).half(),
        torch.randn(2, 10, 8).half(),
        torch.zeros(2, 8, 8),
        torch.zeros(2, 8),
    )
    assert memory.dtype == norm.dtype == torch.float32
