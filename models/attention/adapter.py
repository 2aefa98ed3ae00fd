"""How transformers' attention interface becomes an `AttentionCall`, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface

from edgeinfinite.models.attention.call import AttentionCall

Attend = Callable[[AttentionCall, nn.Module, dict[str, Any]], torch.Tensor]
"""Called with the call, the attention module and what else the model was given by name."""


def register_attention(name: str, attend: Attend) -> None:
    """Gives transformers an attention, which masks by itself.

    Args:
        name: what `interface.attention_implementation` finds it by.
        attend: returns `[B, H, T, D]`.
    """

    def attention(
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None = None,  # noqa: ARG001  (there is none)
        scaling: float | None = None,
        dropout: float = 0.0,  # noqa: ARG001  (frozen backbone)
        sliding_window: int | None = None,
        softcap: float | None = None,
        s_aux: torch.Tensor | None = None,
        **others: Any,
    ) -> tuple[torch.Tensor, None]:
        call = AttentionCall.of(module, query, key, value, scaling, sliding_window, softcap, s_aux)
        return attend(call, module, others).transpose(1, 2), None

    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, _no_mask)


def _no_mask(*args: Any, **kwargs: Any) -> None:
    """None is made: the slots of a cache, or the text's order, decide what a token sees."""


def nothing_read(call: AttentionCall) -> torch.Tensor:
    """Zeros `[B, H, T, D]`, for a probe whose layers are to see the same input at any position."""
    batch, heads, tokens, _ = call.query.shape
    return call.value.new_zeros(batch, heads, tokens, call.value.shape[-1])
