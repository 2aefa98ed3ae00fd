"""`AttentionCall`: the arguments of one attention layer as one value.

Letters: B batch, H query heads, K KV heads, T new tokens, D head dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


def layer_of(module: nn.Module) -> int:
    """The number of an attention module among those of its model.

    It isn't its layer's number where some layers don't attend (`masks.measure_windows`).
    """
    own: int = module.layer_idx  # type: ignore[assignment]
    return getattr(module, "edgeinfinite_number", own)


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call of transformers' attention interface, with its defaults filled in.

    Args:
        layer: number of the layer among those that attend.
        query: `[B, H, T, D]`, after RoPE.
        key: `[B, K, T, D]`, after RoPE.
        value: `[B, K, T, D]`.
        scaling: factor on the scores.
        sliding_window: newest slots that a token may see (its own included), None for all.
        softcap: scores are capped to softcap * tanh(scores / softcap), None for no cap.
        sinks: `[H]`, of each head a learned logit that stands in the softmax beside its scores, and
            attends to nothing; None for none. No cap and no mask applies to it.
    """

    layer: int
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    scaling: float
    sliding_window: int | None = None
    softcap: float | None = None
    sinks: torch.Tensor | None = None

    @classmethod
    def of(
        cls,
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float | None,
        sliding_window: int | None,
        softcap: float | None,
        sinks: torch.Tensor | None = None,
    ) -> AttentionCall:
        """Makes the call of a backbone module; `scaling` defaults to D^-0.5.

        A window that stands only in the model's mask comes before `sliding_window`
        (`masks.measure_windows`).

        Raises:
            ValueError: the sinks aren't one logit of each head.
        """
        if sinks is not None and sinks.shape != query.shape[1:2]:
            raise ValueError("its attention's learned sinks aren't one number a head")
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        window: int | None = getattr(module, "edgeinfinite_window", sliding_window)
        return cls(layer_of(module), query, key, value, scale, window, softcap, sinks)
