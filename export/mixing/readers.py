"""What reads the channels that a module computes, measured: layers are built in many ways.

What computes channels gives NaN, and what certain linear layers make of it is replaced. If a
decoder layer's output still has NaN, something else reads the channels, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

Pair = tuple[Any, list[Any]]
"""What computes channels, a norm or a linear layer, and linear layers that read them."""


def read_alone(model: PreTrainedModel, pairs: Sequence[Pair]) -> list[Pair]:
    """Those of the pairs whose channels nothing else reads.

    A token runs through the decoder for each pair of a layer; all layers are tried at once.

    Args:
        model: a causal LM, attached or not.
        pairs: of its layers, in any order.
    """
    owners = {id(part): layer for layer in model.get_decoder().layers for part in layer.modules()}
    rounds: list[dict[int, Pair]] = []
    for pair in pairs:
        layer = id(owners[id(pair[0])])
        free = next((tried for tried in rounds if layer not in tried), None)
        if free is None:
            rounds.append(free := {})
        free[layer] = pair
    alone = {id(pair[0]) for tried in rounds for pair in _tried(model, tried)}
    return [pair for pair in pairs if id(pair[0]) in alone]


def _tried(model: PreTrainedModel, pairs: dict[int, Pair]) -> list[Pair]:
    """Of pairs by layer, those whose layer's output has no NaN."""
    decoder: Any = model.get_decoder()
    others: set[int] = set()
    with ExitStack() as hooks:
        for layer in decoder.layers:
            hooks.callback(layer.register_forward_hook(_noted(others)).remove)
        for source, linears in pairs.values():
            hooks.callback(source.register_forward_hook(_nan).remove)
            for linear in linears:
                hooks.callback(linear.register_forward_hook(_number).remove)
        with torch.inference_mode():
            decoder(input_ids=torch.tensor([[1]], device=model.device), use_cache=False)
    return [pair for layer, pair in pairs.items() if layer not in others]


def _nan(_: nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
    return torch.full_like(output, torch.nan)


def _number(_: nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(output)


def _noted(others: set[int]) -> Callable[..., Any]:
    """Notes layers whose output has NaN, and gives the next layer none."""

    def hook(layer: nn.Module, _: Any, output: Any) -> Any:
        parts = output if isinstance(output, tuple) else (output,)
        clean = []
        for part in parts:
            floats = isinstance(part, torch.Tensor) and part.is_floating_point()
            if floats and bool(part.isnan().any()):
                others.add(id(layer))
            clean.append(part.nan_to_num(1.0) if floats else part)
        return tuple(clean) if isinstance(output, tuple) else clean[0]

    return hook
