"""Refuses a backbone whose activations float16 can't hold, before anything is compiled."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError

LARGEST = 65_504.0
"""Of float16."""

_TOKENS = 256
"""Enough: what makes a channel large is the first token, or one token that recurs."""


def largest_activation(model: PreTrainedModel) -> tuple[float, str]:
    """The largest magnitude that enters or leaves a module with weights, and which one.

    Args:
        model: reads random tokens after the one that begins a text, if it has one.
    """
    largest, where = 0.0, ""

    def note(name: str) -> Any:
        def hook(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            nonlocal largest, where
            for tensor in (*inputs, output):
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                    found = float(tensor.abs().max())
                    if found > largest or found != found:
                        largest, where = found, name

        return hook

    handles = [
        module.register_forward_hook(note(name))
        for name, module in model.named_modules()
        if next(module.parameters(recurse=False), None) is not None
    ]
    config = model.config.get_text_config()
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(config.vocab_size, (1, _TOKENS), generator=random)
    if isinstance(config.bos_token_id, int):
        tokens[0, 0] = config.bos_token_id
    try:
        with torch.no_grad():
            model(input_ids=tokens, use_cache=False, logits_to_keep=1)
    finally:
        for handle in handles:
            handle.remove()
    return largest, where


def check_magnitudes(model: PreTrainedModel) -> None:
    """Raises an error if the model's numbers don't fit float16.

    Raises:
        EdgeInfiniteError: names the module and its largest number.
    """
    largest, where = largest_activation(model)
    if not largest < LARGEST:
        raise EdgeInfiniteError(
            f"{where} of {type(model).__name__} computes numbers up to {largest:,.0f}, and the HTP "
            f"computes in float16, which holds {LARGEST:,.0f}; use --target cpu"
        )
