"""Modules of a reference over quantized weights, which it dequantizes a few rows at a time."""

from __future__ import annotations

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.export.onnx.passes.quantized_weights import (
    QuantizedWeights,
    dequantized_like,
    owners_of,
)
from edgeinfinite.export.onnx.quantize import QuantizedWeight
from edgeinfinite.models.experts import calls_interface
from edgeinfinite.models.weights.row_modules import (
    RowEmbedding,
    RowLinear,
    embedding_factor,
    is_linear,
)


class DequantizedLinear(RowLinear):
    """A linear layer whose only weight is the quantized one.

    Args:
        linear: whose shape and bias it has.
        weight: `[O, I]`.
    """

    def __init__(self, linear: nn.Linear, weight: QuantizedWeight) -> None:
        super().__init__(linear)
        del self.weight
        self.quantized = weight

    def rows(self, order: slice | torch.Tensor) -> torch.Tensor:
        return self.quantized.rows(order).dequantized()


class DequantizedEmbedding(RowEmbedding):
    """An embedding whose only table is the quantized one.

    Args:
        embedding: whose shape it has.
        factor: what some models (Gemma) multiply an embedding with.
        weight: `[V, I]`.
    """

    def __init__(self, embedding: nn.Embedding, factor: float, weight: QuantizedWeight) -> None:
        super().__init__(embedding, factor)
        del self.weight
        self.quantized = weight

    def rows(self, order: slice | torch.Tensor) -> torch.Tensor:
        return self.quantized.rows(order).dequantized()


def swap_dequantized(model: PreTrainedModel, weights: QuantizedWeights) -> None:
    """Replaces the modules that own the weights; whatever is tied to one shares its integers."""
    for name, weight in weights.items():
        if calls_interface(model.get_submodule(name.rpartition(".")[0])):
            model.get_parameter(name).data = dequantized_like(model, name, weight)
    for parent, name, module, weight in owners_of(model, weights):
        if is_linear(module):
            assert isinstance(module, nn.Linear)
            setattr(parent, name, DequantizedLinear(module, weight).eval())
        else:
            assert isinstance(module, nn.Embedding)
            factor = embedding_factor(module) or 1.0
            setattr(parent, name, DequantizedEmbedding(module, factor, weight).eval())
