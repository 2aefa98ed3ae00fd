"""Embeddings of a token for every layer (PLE: Gemma 3n and 4), beside that of the first layer.

A table has a row for each token, `[V, L P]`: P numbers for each of L layers. A linear layer makes
as many of the token's ordinary embedding, and each layer gets its part of their sum. Letters: V
vocabulary, L layers, P dimensions of a layer's embedding, B batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.weights.row_modules import compute_dtype

_TABLE = "embed_tokens_per_layer"
_PROJECTION = "per_layer_model_projection"


def table_of(model: PreTrainedModel) -> Any:
    """The module with the table of embeddings for every layer; None in a model without."""
    return getattr(model.get_decoder(), _TABLE, None)


def probe_arguments(model: PreTrainedModel, batch: int) -> dict[str, torch.Tensor]:
    """What a decoder wants by name for a probe of one token, given as an embedding and not by id.

    Args:
        model: a causal LM.
        batch: B.

    Returns:
        `per_layer_inputs` `[B, 1, L, P]`, zeros: a token without embeddings for the layers. Nothing
        for other models.
    """
    table = table_of(model)
    if table is None:
        return {}
    text = model.config.get_text_config()
    shape = batch, 1, text.num_hidden_layers, text.hidden_size_per_layer_input
    return {"per_layer_inputs": torch.zeros(shape, device=model.device, dtype=compute_dtype(model))}


def keep_inputs_of(model: PreTrainedModel, layers: Sequence[int]) -> None:
    """Leaves the inputs of some layers to a copy of a model that has only these.

    Args:
        model: a copy; its table and its projection are replaced by others over rows and columns of
            the same numbers.
        layers: those that are left, in this order.
    """
    table, decoder = table_of(model), model.get_decoder()
    if table is None:
        return
    width = model.config.get_text_config().hidden_size_per_layer_input
    kept = torch.cat([torch.arange(at * width, (at + 1) * width) for at in layers])
    projection: Any = getattr(decoder, _PROJECTION)
    setattr(decoder, _TABLE, _Columns(table, kept))
    setattr(decoder, _PROJECTION, _Outputs(projection, kept))


class _Columns(nn.Module):
    """Some columns of what an embedding gives, as a row is looked up: the table stays one."""

    def __init__(self, table: nn.Embedding, columns: torch.Tensor) -> None:
        super().__init__()
        self.table, self.columns = table, columns

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """`[B, T]` to `[B, T, columns]`."""
        return self.table(tokens)[..., self.columns]


class _Outputs(nn.Module):
    """Some outputs of a linear layer."""

    def __init__(self, linear: nn.Linear, outputs: torch.Tensor) -> None:
        super().__init__()
        self.linear, self.outputs = linear, outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[B, T, I]` to `[B, T, outputs]`."""
        return self.linear(x)[..., self.outputs]
