"""Linear layers and embeddings over groups of integers: MatMulNBits and GatherBlockQuantized.

Letters: O outputs, I inputs, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.export.backend import Integers
from edgeinfinite.export.onnx import operators
from edgeinfinite.export.onnx.passes.embeddings import embedding_kind
from edgeinfinite.export.onnx.quantize import (
    QuantizedWeight,
    can_quantize,
    judged_rows,
    quantize,
    take_over,
    taken_bytes,
)
from edgeinfinite.export.recipes import Recipe
from edgeinfinite.models.checkpoint.stored_loading import release_stored
from edgeinfinite.models.experts import as_rows, calls_interface, from_rows
from edgeinfinite.models.layer_inputs import table_of
from edgeinfinite.models.weights.grouped_weight import GroupedWeight
from edgeinfinite.models.weights.row_modules import embedding_factor, is_linear


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


_READ_AT_ONCE = 1 << 30
"""Bytes of weights, after which what was read is given back; it takes milliseconds."""

QuantizedWeights = dict[str, QuantizedWeight]
"""By the weight's name in `model.state_dict()`; a tied embedding goes by the embedding's name."""


def quantize_weights(
    model: PreTrainedModel, recipe: Recipe, integers: Integers | None = None
) -> QuantizedWeights:
    """Quantizes what the recipe names, as far as it is a matrix of a Linear or Embedding.

    What was read of a model from `load_stored` is given back now and then: Gemma 4 E2B's 9 GB in
    bfloat16 took their place in memory beside what came of them.

    Args:
        model: left as it is.
        recipe: decides what is quantized.
        integers: weights that are taken over instead of being rounded.
    """
    weights: QuantizedWeights = {}
    known = integers or {}
    read = 0
    for name, parameter in model.named_parameters():
        chosen = recipe.format_of(name)
        owner = model.get_submodule(name.rpartition(".")[0])
        if not chosen or not _replaceable(owner):
            continue
        if name in known and _fits(known[name], owner):
            weights[name] = take_over(known[name])
            continue
        matrix = _matrix(owner, parameter)
        if can_quantize(matrix, chosen):
            weights[name] = quantize(matrix, chosen, offsets=is_linear(owner))
            read += parameter.nbytes
        del matrix
        if read >= _READ_AT_ONCE:
            release_stored(model)
            read = 0
    return weights


def dequantized_like(model: PreTrainedModel, name: str, weight: QuantizedWeight) -> torch.Tensor:
    """A weight as the artifact computes with it, in the shape of the model's parameter."""
    owner = model.get_submodule(name.rpartition(".")[0])
    rows = weight.dequantized()
    return from_rows(owner, rows) if calls_interface(owner) else rows


def stored_bytes(model: PreTrainedModel, recipe: Recipe, integers: Integers | None = None) -> int:
    """Bytes of all weights as `quantize_weights` would store them, without rounding them.

    Every row of a weight takes the same bytes, and whether there are offsets is judged by a few of
    its rows in any case (`quantize.judged_rows`): only those are rounded.

    Args:
        model, recipe, integers: as for `quantize_weights`; codes aren't looked at.
    """
    known, total = integers or {}, 0
    for name, parameter in model.named_parameters():
        chosen = recipe.format_of(name)
        owner = model.get_submodule(name.rpartition(".")[0])
        if not chosen or not _replaceable(owner):
            total += parameter.numel() * 4
        elif name in known and _fits(known[name], owner):
            total += taken_bytes(known[name])
        elif can_quantize(matrix := _matrix(owner, parameter), chosen):
            some = quantize(judged_rows(matrix), chosen, offsets=is_linear(owner))
            total += some.bytes_of(len(matrix))
        else:
            total += parameter.numel() * 4
    return total


def owners_of(
    model: PreTrainedModel, weights: QuantizedWeights
) -> Iterator[tuple[nn.Module, str, nn.Module, QuantizedWeight]]:
    """The modules whose weights are quantized, also those that are tied to one.

    Yields:
        The parent, the module's name there, the module and its weight; it may be replaced.
    """
    by_tensor = {id(model.get_parameter(name)): weight for name, weight in weights.items()}
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            weight = by_tensor.get(id(getattr(module, "weight", None)))
            if weight is not None:
                yield parent, name, module, weight


def swap_quantized(model: PreTrainedModel, weights: QuantizedWeights) -> None:
    """Replaces the modules that own the weights; whatever is tied to one shares its bytes."""
    of_layers = table_of(model)
    for parent, name, module, weight in owners_of(model, weights):
        if is_linear(module):
            assert isinstance(module, nn.Linear)
            setattr(parent, name, QuantizedLinear(weight, module.bias))
        else:
            kind = embedding_kind(weight, of_layers=module is of_layers)
            setattr(parent, name, kind(weight, embedding_factor(module) or 1.0))


def _fits(weight: GroupedWeight, owner: nn.Module) -> bool:
    """An embedding has no place for offsets."""
    return is_linear(owner) or weight.symmetric


def _replaceable(module: nn.Module) -> bool:
    return is_linear(module) or calls_interface(module) or embedding_factor(module) is not None


def _matrix(owner: nn.Module, parameter: torch.Tensor) -> torch.Tensor:
    """A weight as rows over inputs: of experts, one expert's after the other's."""
    return as_rows(owner, parameter) if calls_interface(owner) else parameter
