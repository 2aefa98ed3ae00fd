"""Copies of a model that share its weights: what is tried on them leaves the model as it is."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.layer_inputs import keep_inputs_of

_MEASURED = frozenset(
    f"edgeinfinite_{name}"
    for name in ("architecture", "recurrent", "number", "reads_another", "window")
)
"""Facts about a whole model, each a pass through it; a copy of all layers has them."""

_NUMBERS = "attn_layer_indices"
"""By which Bamba's configuration names the layers that attend."""


def shared_copy(model: PreTrainedModel, layers: Sequence[int] | None = None) -> PreTrainedModel:
    """A copy with the same parameters, and without what `attach` adds.

    Args:
        model: a causal LM whose decoder has a list of layers.
        layers: which of them the copy has, in this order; None: all. With one that reads the cache
            of another goes that other.

    Returns:
        A model of the same class. Its configuration is a copy, too, in which lists with an entry a
        layer have the entries of these layers. With all layers it knows what was measured of the
        model; with some that is measured anew.
    """
    memo: dict[int, object] = {id(parameter): parameter for parameter in model.parameters()}
    every = list(model.get_decoder().layers)
    chosen = range(len(every)) if layers is None else layers
    for index, layer in enumerate(every):
        if index not in chosen:
            memo[id(layer)] = nn.Identity()  # its modules aren't worth copying
    copied = copy.deepcopy(model, memo)
    for module in copied.modules():
        for name in [name for name in vars(module) if name.startswith("edgeinfinite_")]:
            if layers is not None or name not in _MEASURED:
                del module.__dict__[name]
        for name in ("memory_gate", "retention_scorer", "cache_scales"):
            module._modules.pop(name, None)
            module.__dict__.pop(name, None)
    if layers is not None:
        _choose(copied, len(every), layers)
    return copied


def _choose(model: PreTrainedModel, count: int, layers: Sequence[int]) -> None:
    decoder, text = model.get_decoder(), model.config.get_text_config()
    decoder.layers = nn.ModuleList([decoder.layers[index] for index in layers])
    for name, value in list(vars(text).items()):
        if name == _NUMBERS and value:
            text.__dict__[name] = [n for n, index in enumerate(layers) if index in value]
        elif isinstance(value, list | tuple) and len(value) == count:
            text.__dict__[name] = type(value)(value[index] for index in layers)
    text.num_hidden_layers = len(layers)
    keep_inputs_of(model, layers)
    _share_as_before(decoder, text, count, layers)
    for number, (index, layer) in enumerate(zip(layers, decoder.layers, strict=True)):
        for module in layer.modules():
            if getattr(module, "layer_idx", None) == index:
                module.layer_idx = number


def _share_as_before(decoder: nn.Module, text: Any, count: int, layers: Sequence[int]) -> None:
    """The last layers read caches of others (Gemma 3n and 4): how many of them are left."""
    sharing = getattr(text, "num_kv_shared_layers", None)
    if sharing:
        text.num_kv_shared_layers = sum(index >= count - sharing for index in layers)
        decoder.first_kv_shared_layer_idx = len(layers) - text.num_kv_shared_layers
