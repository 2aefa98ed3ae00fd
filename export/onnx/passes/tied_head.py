"""Lets a float LM head read the embedding's own table, so that the table is stored once.

A linear layer is exported as MatMul with the transposed weight. For a head that is tied to the
embedding this is a second copy of the largest tensor. Gemm takes the table as it is.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.onnx.ops import symbolic
from transformers import PreTrainedModel


class UntransposedLinear(nn.Module):
    """nn.Linear as one Gemm with transB, for tracing.

    Args:
        linear: weight `[O, I]`.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., I]` to `[..., O]`."""
        rows = x.flatten(0, -2)
        inputs = [rows, self.weight] + ([] if self.bias is None else [self.bias])
        shape = [rows.shape[0], self.weight.shape[0]]
        product = symbolic("::Gemm", inputs, {"transB": 1}, dtype=x.dtype, shape=shape, version=13)
        return product.unflatten(0, x.shape[:-1])


def untransposed_head(model: PreTrainedModel) -> bool:
    """Replaces the LM head if it is a float Linear tied to the embedding.

    Returns:
        Whether it was replaced.
    """
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if type(head) is not nn.Linear or head.weight is not getattr(embedding, "weight", None):
        return False
    model.set_output_embeddings(UntransposedLinear(head))
    return True
