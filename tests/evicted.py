"""What untouched transformers say after evictions, where one layer makes that an oracle.

K and V of a model's only layer depend on their token and position alone. So after any evictions its
logits are those of a text that has only the tokens that were kept, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.attach import attach, config_of
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

EVICTING = Geometry(segment_length=8, sink_length=4, window_length=12, policy="carry")


def kept_of(geometry: Geometry, tokens: Sequence[int]) -> list[int]:
    """Those that a session without recall slots still holds after reading `tokens`."""
    if geometry.slides(0):
        return list(tokens)  # what the window hides was never seen
    sinks, segment = geometry.sink_length, geometry.segment_length
    kept: list[int] = []
    for token in tokens:
        if len(kept) == geometry.capacity:
            del kept[sinks : sinks + segment]
        kept.append(token)
    return kept


def shaken(model: PreTrainedModel) -> PreTrainedModel:
    """The model with other weights where an initial one is the same for all channels."""
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.4 * torch.randn(parameter.shape, generator=generator)
    return model


def error_after_evictions(
    model: PreTrainedModel, untouched: PreTrainedModel, parts: Sequence[int]
) -> float:
    """The largest relative error of an attached model's logits after each part of a text.

    Args:
        model: of one layer; attached here.
        untouched: the same model.
        parts: in how many tokens each call reads the text.
    """
    attach(model, EdgeInfiniteConfig(EVICTING, NO_GATE))
    session, tokens = Session(TorchEngine(model), chunk_length=5), random_tokens(sum(parts))
    error, end = 0.0, 0
    for count in parts:
        logits = torch.from_numpy(session.append(tokens[end : end + count]).copy())
        end += count
        kept = kept_of(config_of(model).geometry, tokens[:end])
        with torch.inference_mode():
            wanted = untouched(torch.tensor([kept])).logits[0, -1]
        error = max(error, float((logits - wanted).abs().max() / wanted.abs().max()))
    assert session.compressions >= 3
    return error
