"""Linear layers and embeddings over groups of integers: MatMulNBits and GatherBlockQuantized.

Letters: O outputs, I inputs, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from edgeinfinite.export.backend import Integers
from edgeinfinite.export.onnx import operators
from edgeinfinite.export.onnx.passes.narrow_codes import planes
from edgeinfinite.export.onnx.quantize import QuantizedWeight, can_quantize, quantize, take_over
from edgeinfinite.export.recipes import Recipe
from edgeinfinite.models.grouped_weight import GroupedWeight
from edgeinfinite.models.row_modules import embedding_factor, is_linear


class QuantizedLinear(nn.Module):
    """nn.Linear with a quantized weight, for tracing.

    Args:
        weight: `[O, I]`.
        bias: `[O]` or None.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None
    bias: torch.Tensor | None

    def __init__(self, weight: QuantizedWeight, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.bits, self.group = weight.packed_bits, weight.format.group
        self.offsets = 0 if weight.offsets is None else weight.scales.shape[1]
        wide = weight.widened()
        self.register_buffer("codes", wide.packed_codes())
        self.register_buffer("scales", wide.scales)
        self.register_buffer("zeros", wide.packed_zeros())
        self.register_buffer("bias", bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., I]` to `[..., O]`."""
        inputs = x.shape[-1] + self.offsets
        if self.offsets:
            x = torch.cat((x, x.unflatten(-1, (self.offsets, self.group)).sum(-1)), -1)
        return operators.matmul_nbits(
            x,
            self.codes,
            self.scales,
            self.zeros,
            self.bias,
            inputs=inputs,
            bits=self.bits,
            group=self.group,
        )


class QuantizedEmbedding(nn.Module):
    """nn.Embedding with a quantized table, for tracing; its bytes are those of the tied LM head.

    Args:
        weight: `[V, I]`.
        factor: what some models (Gemma) multiply an embedding with.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor
        self.bits, self.group = weight.packed_bits, weight.format.group
        self.register_buffer("codes", weight.packed_codes().flatten(1))
        self.register_buffer("scales", weight.scales)
        self.register_buffer("zeros", weight.packed_zeros())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """`[B, T]` to `[B, T, I]`."""
        rows = operators.gather_block_quantized(
            self.codes, tokens, self.scales, self.zeros, bits=self.bits, group=self.group
        )
        return rows if self.factor == 1.0 else rows * self.factor


class NarrowEmbedding(nn.Module):
    """nn.Embedding over a table of 5 or 6 bits, for tracing: its bytes are the LM head's planes.

    `narrow_codes` stores the head's codes in the same two planes. The head's are put together when
    the graph is loaded; here that happens to the rows that are looked up, so the table stays on
    disk.

    Args:
        weight: `[V, I]`, symmetric.
        factor: what some models (Gemma) multiply an embedding with.
    """

    low: torch.Tensor
    high: torch.Tensor
    table: torch.Tensor
    scales: torch.Tensor

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__()
        self.factor, self.group = factor, weight.format.group
        low, high, table = planes(weight.codes.numpy(), weight.format.bits)
        self.middle = 2 ** (weight.format.bits - 1)
        self.register_buffer("low", torch.from_numpy(low))
        self.register_buffer("high", torch.from_numpy(high))
        self.register_buffer("table", torch.from_numpy(table))
        self.register_buffer("scales", weight.scales.half())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """`[B, T]` to `[B, T, I]`."""
        pairs = functional.embedding(tokens, self.low).int()
        low = torch.stack((pairs % 16, pairs // 16), -1).flatten(-2)
        rest = functional.embedding(tokens, self.high).int()
        high = functional.embedding(rest, self.table).flatten(-2).int()
        groups = (low + high - self.middle).float().unflatten(-1, (-1, self.group))
        scales = functional.embedding(tokens, self.scales).float()
        return (groups * scales.unsqueeze(-1)).flatten(-2) * self.factor


QuantizedWeights = dict[str, QuantizedWeight]
"""By the weight's name in `model.state_dict()`; a tied embedding goes by the embedding's name."""


def quantize_weights(
    model: PreTrainedModel, recipe: Recipe, integers: Integers | None = None
) -> QuantizedWeights:
    """Quantizes what the recipe names, as far as it is a matrix of a Linear or Embedding.

    Args:
        model: left as it is.
        recipe: decides what is quantized.
        integers: weights that are taken over instead of being rounded.
    """
    weights = {}
    known = integers or {}
    for name, parameter in model.named_parameters():
        chosen = recipe.format_of(name)
        owner = model.get_submodule(name.rpartition(".")[0])
        if not chosen or not _replaceable(owner):
            continue
        if name in known and _fits(known[name], owner):
            weights[name] = take_over(known[name])
        elif can_quantize(parameter, chosen):
            weights[name] = quantize(parameter, chosen, offsets=is_linear(owner))
    return weights


def swap_quantized(model: PreTrainedModel, weights: QuantizedWeights) -> None:
    """Replaces the modules that own the weights; whatever is tied to one shares its bytes."""
    by_tensor = {id(model.get_parameter(name)): weight for name, weight in weights.items()}
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            weight = by_tensor.get(id(getattr(module, "weight", None)))
            if weight is None:
                continue
            if is_linear(module):
                assert isinstance(module, nn.Linear)
                setattr(parent, name, QuantizedLinear(weight, module.bias))
            else:
                narrow = weight.format.bits in (5, 6)
                kind = NarrowEmbedding if narrow else QuantizedEmbedding
                setattr(parent, name, kind(weight, embedding_factor(module) or 1.0))


def _fits(weight: GroupedWeight, owner: nn.Module) -> bool:
    """An embedding has no place for offsets."""
    return is_linear(owner) or weight.symmetric


def _replaceable(module: nn.Module) -> bool:
    return is_linear(module) or embedding_factor(module) is not None
