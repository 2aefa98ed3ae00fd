"""Which linear layers read what attention gives, measured: names and order differ between models.

Attention gives NaN for one token, and what is computed from NaN is NaN. So the first linear layer
of a decoder layer that is given NaN reads attention's result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from edgeinfinite.models.attention.adapter import nothing_read, register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.interface import attention_implementation

_NAME = "edgeinfinite-nan"


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
        with torch.inference_mode(), attention_implementation(model, _NAME):
            decoder(input_ids=torch.tensor([[1]], device=model.device), use_cache=False)
    return set(found.values())


def layers_by_input(model: PreTrainedModel) -> dict[str, list[str]]:
    """For each linear layer of the decoder those that read the same tensor, as they are called.

    That is the order of a graph's nodes; Falcon-H1 calls `up_proj` before `gate_proj`. A tensor
    times 1 is the same tensor, as in a graph: so it is in Falcon-H1's GGUF files, whose weights
    hold the multipliers of its attention's and its recurrence's input.

    Args:
        model: a causal LM that `architecture_of` supports, attached or not.
    """
    decoder: Any = model.get_decoder()
    inputs: dict[str, torch.Tensor] = {}
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):

                def note(_: nn.Module, given: tuple[Any, ...], name: str = name) -> None:
                    inputs[name] = given[0]  # kept, so that no other tensor lies in its place

                hooks.callback(module.register_forward_pre_hook(note).remove)
        with torch.inference_mode(), attention_implementation(model, _NAME), _TimesOne():
            decoder(input_ids=torch.tensor([[1]], device=model.device), use_cache=False)
    groups: dict[tuple[int, int], list[str]] = {}
    for name, given in inputs.items():
        groups.setdefault((given.data_ptr(), given.shape[-1]), []).append(name)
    return {name: group for group in groups.values() for name in group}


class _TimesOne(TorchFunctionMode):
    """A tensor times the number 1 is the tensor itself."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.Tensor.mul, torch.Tensor.__mul__, torch.mul) and len(args) == 2:
            for one, other in (args, args[::-1]):
                if isinstance(one, torch.Tensor) and isinstance(other, int | float) and other == 1:
                    return one
        return func(*args, **kwargs or {})


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


def _attend(call: AttentionCall, _: nn.Module, __: dict[str, Any]) -> torch.Tensor:
    return nothing_read(call).fill_(torch.nan)


register_attention(_NAME, _attend)
