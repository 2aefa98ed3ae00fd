"""What transformers' own hybrids say of a text, also of one of which tokens were evicted."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
from tiny_lfm2 import tiny_lfm2
from tiny_mamba2 import tiny_bamba, tiny_falcon_h1, tiny_granite_h
from tiny_qwen3_5 import tiny_qwen3_5, tiny_qwen3_next
from transformers import DynamicCache, PreTrainedModel
from untouched import next_logits

from tiny import random_tokens

S, N, W = 4, 8, 12
MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "lfm2": tiny_lfm2,
    "qwen3_5": tiny_qwen3_5,
    "qwen3_next": tiny_qwen3_next,
    "granite_h": tiny_granite_h,
    "bamba": tiny_bamba,
    "falcon_h1": tiny_falcon_h1,
}

_FEW = ("linear_attention", "full_attention", "linear_attention")
SMALL: dict[str, Callable[[], PreTrainedModel]] = {
    "small qwen3_5": lambda: tiny_qwen3_5(_FEW),
    "small qwen3_next": lambda: tiny_qwen3_next(_FEW),
    "small granite_h": lambda: tiny_granite_h(_FEW),
    "small bamba": lambda: tiny_bamba(_FEW),
    "small falcon_h1": lambda: tiny_falcon_h1(1),
}
"""Of fewer layers, for exports that take long."""

_ALL = MODELS | SMALL


@functools.cache
def untouched(kind: str, count: int) -> np.ndarray:
    """The logits `[T, V]` of transformers, for a text of which nothing is evicted."""
    tokens = torch.tensor([random_tokens(count)])
    with torch.no_grad():
        return _ALL[kind]()(input_ids=tokens, use_cache=False).logits[0].numpy()


@functools.cache
def untouched_after_evictions(kind: str, count: int) -> np.ndarray:
    """The logits `[T, V]` of transformers' model with its own cache, token by token.

    Whenever W + N tokens follow the sinks, the N oldest of them are cut out of the cache, and RoPE
    is turned back in the keys after them. The states of layers that don't attend stay.
    """
    model, found = _ALL[kind](), []
    cache = DynamicCache(config=model.config)
    types = enumerate(model.config.layer_types)
    attends = [i for i, kind in types if kind in ("full_attention", "hybrid")]
    for token in random_tokens(count):
        length = cache.layers[attends[0]].keys.shape[2] if found else 0
        if length == S + W + N:
            cos, sin = turns_of(model)
            for layer in (cache.layers[index] for index in attends):
                moved = layer.keys[:, :, S + N :]
                turns, stays = moved.split([cos.shape[-1], moved.shape[-1] - cos.shape[-1]], -1)
                first, second = turns.chunk(2, dim=-1)  # turned back by N positions
                turns = turns * cos[0] + torch.cat((second, -first), dim=-1) * sin[0]
                moved = torch.cat((turns, stays), dim=-1)
                layer.keys = torch.cat((layer.keys[:, :, :S], moved), dim=2)
                layer.values = torch.cat((layer.values[:, :, :S], layer.values[:, :, S + N :]), 2)
            length -= N
        found.append(next_logits(model, cache, token, length))
    return np.stack(found)


def turns_of(model: PreTrainedModel) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines by which N positions turn a key; of no dimension without RoPE."""
    rotary = model.model.rotary_emb
    return rotary(torch.ones(1), torch.tensor([[N]])) if rotary else (torch.ones(1, 1, 0),) * 2


def assert_close(kind: str, logits: np.ndarray, wanted: np.ndarray) -> None:
    """Within 1e-4; for qwen3_next, which rounds 1.2e-4 apart in float32, of the largest logit."""
    scale = np.abs(wanted).max() if kind.endswith("qwen3_next") else 1.0
    assert np.abs(logits - wanted).max() < 1e-4 * scale
