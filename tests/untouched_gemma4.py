"""What transformers' own Gemma 3n and 4 say of a text, also of one that has lost tokens."""

from __future__ import annotations

import functools

import numpy as np
import torch
from tiny_gemma4 import MODELS, SMALL, WINDOW
from transformers import DynamicCache, PreTrainedModel
from untouched import next_logits

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens


@functools.cache
def untouched(kind: str, count: int) -> np.ndarray:
    """The logits `[T, V]` of transformers, for a text of which nothing is evicted."""
    with torch.no_grad():
        found = MODELS[kind]()(input_ids=torch.tensor([random_tokens(count)]), use_cache=False)
    logits: np.ndarray = found.logits[0].numpy()
    return logits


@functools.cache
def untouched_after_evictions(kind: str, count: int, geometry: Geometry) -> np.ndarray:
    """The logits `[T, V]` of transformers' model with its own cache, token by token.

    Whenever W + N tokens follow the S sinks in a layer that sees everything, the N oldest of them
    are cut out of its cache. The keys after them, and all of those in sliding windows, are turned
    back by the N positions that the text has lost.
    """
    sinks, segment = geometry.sink_length, geometry.segment_length
    model, found = (MODELS | SMALL)[kind](), []
    cache, types = DynamicCache(config=model.config), model.config.layer_types
    own, full = len(types) - model.config.num_kv_shared_layers, types.index("full_attention")
    for token in random_tokens(count):
        length = cache.layers[full].keys.shape[2] if found else 0
        if length == geometry.capacity:
            for layer, type_ in zip(cache.layers, types[:own], strict=False):
                kept, start = (sinks, sinks + segment) if type_ == types[full] else (0, 0)
                moved = _turned_back(model, type_, layer.keys[:, :, start:], segment)
                layer.keys = torch.cat((layer.keys[:, :, :kept], moved), dim=2)
                values = layer.values[:, :, :kept], layer.values[:, :, start:]
                layer.values = torch.cat(values, dim=2)
            length -= segment
        found.append(next_logits(model, cache, token, length))
    assert cache.layers[0].keys.shape[2] == WINDOW - 1
    return np.stack(found)


def assert_any_split_is_untouched(engine: Engine, kind: str, geometry: Geometry) -> None:
    """A text that loses tokens more than three times is transformers', read at once or in parts."""
    tokens, wanted = random_tokens(150), untouched_after_evictions(kind, 150, geometry)
    whole = Session(engine).append(tokens)
    session = Session(engine, chunk_length=5)
    for start, end in ((0, 1), (1, 40), (40, 44), (44, 45), (45, 130), (130, 150)):
        logits = session.append(tokens[start:end])
        assert np.abs(logits - wanted[end - 1]).max() < 1e-4
    assert np.abs(whole - wanted[-1]).max() < 1e-4
    assert session.compressions > 3


def _turned_back(
    model: PreTrainedModel, kind: str, keys: torch.Tensor, positions: int
) -> torch.Tensor:
    """Keys `[1, K, n, D]` of tokens that stand so many positions earlier."""
    cos, sin = model.model.rotary_emb(torch.ones(1), torch.tensor([[positions]]), kind)
    first, second = keys.chunk(2, dim=-1)
    return keys * cos[0] + torch.cat((second, -first), dim=-1) * sin[0]
