"""`AttentionCall`: the arguments of one attention layer as one value.

Letters: B batch, H query heads, K KV heads, T new tokens, D head dimension.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from edgeinfinite.models.recurrent_states import attention_of


def layer_of(module: nn.Module) -> int:
    """The number of an attention module among those of its model.

    It isn't its layer's number where some layers don't attend, or read what another one cached:
    then it is that one's (`masks.measure_windows`).
    """
    own: int = module.layer_idx  # type: ignore[assignment]
    return getattr(module, "edgeinfinite_number", own)


def reads_another(module: nn.Module) -> bool:
    """Whether an attention module has no keys of its own and reads those of an earlier layer.

    Known once `masks.measure_windows` has run.
    """
    return getattr(module, "edgeinfinite_reads_another", False)


def own_caches(layers: Iterable[nn.Module]) -> list[Any]:
    """The attention modules of decoder layers that have keys of their own, in order."""
    attending = filter(None, map(attention_of, layers))
    return [module for module in attending if not reads_another(module)]


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call of transformers' attention interface, with its defaults filled in.

    Args:
        layer: number of the layer among those that hold a cache, or of the one whose cache this
            one reads.
        query: `[B, H, T, D]`, after RoPE. Of a layer that reads another one's cache it may have the
            newest tokens alone: earlier ones have no further use.
        key: `[B, K, T, D]`, after RoPE.
        value: `[B, K, T, D]`.
        scaling: factor on the scores.
        sliding_window: newest slots that a token may see (its own included), None for all.
        softcap: scores are capped to softcap * tanh(scores / softcap), None for no cap.
        reads_another: whether key and value are those that an earlier layer has cached already.
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
    reads_another: bool = False
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
        shared = reads_another(module)
        return cls(layer_of(module), query, key, value, scale, window, softcap, shared, sinks)
