"""Keys and values of a few random tokens at many positions, as a cache gets them.

The probe's attention returns zeros, so that what a layer reads doesn't depend on the position.
Letters: n tokens, P positions, K KV heads, D head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.attention.adapter import nothing_read, register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.layer_inputs import probe_arguments
from edgeinfinite.models.weights.row_modules import compute_dtype

_PROBE_ATTENTION = "edgeinfinite-key-probe"
_SEEN_ARGUMENT = "edgeinfinite_keys"


class Seen(NamedTuple):
    """What one layer handed to its attention: keys and values `[n, P, K, D]` float32."""

    keys: torch.Tensor
    values: torch.Tensor


def keys_at(model: PreTrainedModel, tokens: int, positions: Sequence[int]) -> list[Seen]:
    """What each layer caches for the same random tokens at different positions.

    Args:
        model: a decoder that `architecture_of` supports.
        tokens: n, how many random tokens.
        positions: P of them.
    """
    seen: dict[int, Seen] = {}
    decoder: Any = model.get_decoder()
    embedding: Any = model.get_input_embeddings()
    width: int = embedding.weight.shape[1]
    made = torch.randn(tokens, 1, width, generator=torch.Generator().manual_seed(1))
    every = made.repeat_interleave(len(positions), 0)
    places = torch.tensor(positions).repeat(tokens).unsqueeze(1)
    training = model.training
    try:
        with torch.no_grad(), attention_implementation(model, _PROBE_ATTENTION):
            decoder.eval()(
                inputs_embeds=every.to(model.device, compute_dtype(model)),
                position_ids=places.to(model.device),
                use_cache=False,
                **probe_arguments(model, len(every)),
                **{_SEEN_ARGUMENT: seen},
            )
    finally:
        model.train(training)
    sizes = tokens, len(positions)
    return [
        Seen(*(part.unflatten(0, sizes).squeeze(3).float() for part in of))
        for _, of in sorted(seen.items())
    ]


def _note_keys(call: AttentionCall, _: nn.Module, others: dict[str, Any]) -> torch.Tensor:
    """The probe's attention: keeps K and V."""
    others[_SEEN_ARGUMENT][call.layer] = Seen(call.key, call.value)
    return nothing_read(call)


register_attention(_PROBE_ATTENTION, _note_keys)
