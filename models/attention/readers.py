"""Which linear layers read what, measured: names and order differ between models.

For what attention gives: it gives NaN for one token, and what is computed from NaN is NaN. So the
first linear layer of a decoder layer that is given NaN reads attention's result. For what layers
have in common: it gives random numbers, and layers that are given equal ones read one input.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.attention.adapter import nothing_read, register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.interface import attention_implementation

_NAN, _RANDOM = "edgeinfinite-nan", "edgeinfinite-random"


def readers_of_attention(model: PreTrainedModel) -> set[str]:
    """The names of the linear layers that read attention's result, one of each decoder layer.

    Args:
        model: a causal LM that `architecture_of` supports, attached or not.
    """
    decoder: Any = model.get_decoder()
    found: dict[int, str] = {}
    names = {id(module): name for name, module in model.named_modules()}
    with ExitStack() as hooks:
        for index, layer in enumerate(decoder.layers):
            handle = layer.register_forward_pre_hook(_without_nan, with_kwargs=True)
            hooks.callback(handle.remove)
            for module in layer.modules():
                if isinstance(module, nn.Linear):
                    hook = _noted(found, index, names[id(module)])
                    hooks.callback(module.register_forward_pre_hook(hook).remove)
        with torch.inference_mode(), attention_implementation(model, _NAN):
            decoder(input_ids=torch.tensor([[1]], device=model.device), use_cache=False)
    return set(found.values())


def layers_by_input(model: PreTrainedModel) -> dict[str, list[str]]:
    """For each linear layer of the decoder those that read equal inputs, as they are called.

    That is the order of a graph's nodes; Falcon-H1 calls `up_proj` before `gate_proj`. A graph has
    what is equal once: Falcon-H1's attention and recurrence read the same numbers times a
    multiplier each, which are 1 in its GGUF files.

    Args:
        model: a causal LM that `architecture_of` supports, attached or not.
    """
    decoder: Any = model.get_decoder()
    inputs: dict[str, bytes] = {}
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):

                def note(_: nn.Module, given: tuple[Any, ...], name: str = name) -> None:
                    inputs[name] = given[0].float().cpu().numpy().tobytes()

                hooks.callback(module.register_forward_pre_hook(note).remove)
        hooks.enter_context(torch.random.fork_rng(devices=[]))
        with torch.inference_mode(), attention_implementation(model, _RANDOM):
            decoder(input_ids=torch.tensor([[1]], device=model.device), use_cache=False)
    groups: dict[bytes, list[str]] = {}
    for name, given in inputs.items():
        groups.setdefault(given, []).append(name)
    return {name: group for group in groups.values() for name in group}


def _without_nan(
    _: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A layer's input is what it would be if the layers before it had no attention."""

    def clean(value: Any) -> Any:
        floats = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.nan_to_num(1.0) if floats else value

    return tuple(map(clean, given)), {name: clean(value) for name, value in named.items()}


def _noted(found: dict[int, str], index: int, name: str) -> Callable[..., None]:
    def hook(_: nn.Module, given: tuple[Any, ...]) -> None:
        if bool(given[0].isnan().any()):
            found.setdefault(index, name)

    return hook


def _give_nan(call: AttentionCall, _: nn.Module, __: dict[str, Any]) -> torch.Tensor:
    return nothing_read(call).fill_(torch.nan)


def _give_random(call: AttentionCall, _: nn.Module, __: dict[str, Any]) -> torch.Tensor:
    return nothing_read(call).normal_()


register_attention(_NAN, _give_nan)
register_attention(_RANDOM, _give_random)
