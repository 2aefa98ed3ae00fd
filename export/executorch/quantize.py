"""How a recipe's formats are packed for XNNPACK, as torchao's tensors.

XNNPACK has symmetric weights only: 4 bits in groups of 32, or 8 bits with one scale a row. A
recipe's 4 bits become the former, with offsets where they pay (`groups.py`), its 5, 6 and 8 bits
the latter.
The inputs of such layers are quantized to 8 bits, token by token, while they run.

Letters: T tokens, O outputs, I inputs, n groups in a row, V vocabulary, d width.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (embedding_byte)
import torch
from torch import nn
from torchao.quantization import IntxUnpackedToInt8Tensor
from torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor import (
    IntxUnpackedToInt8TensorActivationQuantization as ActivationQuantization,
)
from torchao.utils import unwrap_tensor_subclass
from transformers import PreTrainedModel

from edgeinfinite.artifact.manifest import QuantizationInfo
from edgeinfinite.export.backend import Integers
from edgeinfinite.export.executorch.groups import GROUP, Groups, choose_groups, take_over
from edgeinfinite.export.parity.sensitivity import RoundsInput
from edgeinfinite.export.recipes import Recipe
from edgeinfinite.models.grouped_weight import GroupedWeight

_ROWS = "int8 symmetric, one scale a row"
_GROUPS = f"int4 symmetric g{GROUP}"
_OFFSETS = f"{_GROUPS} with int8 offsets"
_PER_TOKEN = ActivationQuantization.INT8_ASYM_PER_TOKEN


class OffsetLinear(nn.Module):
    """A layer whose groups have offsets: they are multiplied with the sums over each group.

    Args:
        codes: the layer without the offsets, `[O, I]`.
        offsets: `[O, n]`.
    """

    def __init__(self, codes: nn.Linear, offsets: nn.Linear) -> None:
        super().__init__()
        self.codes = codes
        self.offsets = offsets

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, I]` to `[1, T, O]`."""
        sums = x.reshape(1, -1, self.offsets.in_features, GROUP).sum(-1)
        result: torch.Tensor = self.codes(x) + self.offsets(sums)
        return result


class QuantizedEmbedding(nn.Module):
    """An embedding of int8 rows with one scale each.

    Args:
        weight: `[V, d]` float32.
        factor: what some models (Gemma) multiply an embedding with.
    """

    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self, weight: torch.Tensor, factor: float = 1.0) -> None:
        super().__init__()
        self._factor = factor
        rows = IntxUnpackedToInt8Tensor.from_hp(weight.detach(), (1, weight.shape[1]), torch.int8)
        self.register_buffer("weight", rows.qdata)
        self.register_buffer("scales", rows.scale.flatten())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Rows `[1, T, d]` float32 of tokens `[1, T]` int64."""
        rows: torch.Tensor = torch.ops.quantized_decomposed.embedding_byte.default(
            self.weight, self.scales, None, -128, 127, tokens
        )
        return rows if self._factor == 1.0 else rows * self._factor


class RoundedInputLinear(nn.Linear, RoundsInput):
    """What a quantized layer computes, on weights that are dequantized once.

    Args:
        weight: the layer's quantized weight.
        bias: `[out]` or None.
    """

    def __init__(self, weight: IntxUnpackedToInt8Tensor, bias: torch.Tensor | None) -> None:
        out_features, in_features = weight.shape
        super().__init__(in_features, out_features, bias is not None, device="meta")
        self.weight = nn.Parameter(weight.dequantize(), requires_grad=False)
        self.bias = bias  # type: ignore[assignment]
        self.rounds = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, out]` of x `[1, T, in]`, which is rounded to 8 bits token by token first."""
        if not self.rounds:
            return super().forward(x)
        # As XNNPACK does it: the zero point is rounded from the end where less is lost.
        low = x.amin(-1, keepdim=True).clamp(max=0.0)
        high = x.amax(-1, keepdim=True).clamp(min=0.0)
        span = high - low
        per_unit = torch.where(span == 0, 1.0, 255.0 / span)
        from_low, from_high = -128.0 - low * per_unit, 127.0 - high * per_unit
        less_at_low = low * per_unit + high * per_unit - 1.0 > 0
        zero = torch.where(less_at_low, from_low, from_high).clamp(-128.0, 127.0).round()
        steps = ((x * per_unit).round() + zero).clamp(-128.0, 127.0)
        return nn.functional.linear((steps - zero) / per_unit, self.weight, self.bias)


@contextmanager
def unrounded_inputs(model: nn.Module) -> Iterator[None]:
    """Within it the layers of a `reference` don't round their inputs."""
    layers = [module for module in model.modules() if isinstance(module, RoundedInputLinear)]
    for layer in layers:
        layer.rounds = False
    try:
        yield
    finally:
        for layer in layers:
            layer.rounds = True


def quantized(
    model: PreTrainedModel, recipe: Recipe, integers: Integers | None = None
) -> tuple[PreTrainedModel, QuantizationInfo]:
    """A copy of the model for tracing; nothing that isn't quantized is duplicated.

    Args:
        model: after `attach`; left as it is.
        recipe: which weights get how many bits.
        integers: weights to be taken over as they are: those of 4 bits; more become 8.

    Returns:
        The copy, and what became of each weight by name.
    """
    twin, info = _packed(model, recipe, integers or {})
    unwrap_tensor_subclass(twin)  # plain tensors, which can be traced
    return twin, info


def reference(
    model: PreTrainedModel, recipe: Recipe, integers: Integers | None = None
) -> PreTrainedModel:
    """A copy of the model that computes as the artifact does, in plain PyTorch.

    Args:
        model, recipe, integers: as for `quantized`.
    """
    twin, _ = _packed(model, recipe, integers or {})
    for name, module in list(twin.named_modules()):
        if isinstance(getattr(module, "weight", None), IntxUnpackedToInt8Tensor):
            twin.set_submodule(name, RoundedInputLinear(module.weight, module.bias))
    return twin


def stored_bytes(model: PreTrainedModel, recipe: Recipe, integers: Integers | None = None) -> int:
    """Bytes of all weights in the program; a tied LM head's rows of 8 bits are the embedding's own.

    Args:
        model, recipe, integers: as for `quantized`.
    """
    twin, _ = _packed(model, recipe, integers or {})
    sizes: dict[int, int] = {}
    tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    head = twin.get_output_embeddings()
    codes = getattr(head, "weight", None)  # one with offsets has its codes a level below
    shares = tied and isinstance(codes, IntxUnpackedToInt8Tensor) and _is_rows(codes)
    for module in twin.modules():
        if shares and module is head:
            continue
        if isinstance(module, QuantizedEmbedding):
            sizes[id(module)] = sum(buffer.nbytes for buffer in module.buffers(recurse=False))
        for parameter in module.parameters(recurse=False):
            sizes[id(parameter)] = _bytes(parameter)
    return sum(sizes.values())


def _bytes(parameter: torch.Tensor) -> int:
    if not isinstance(parameter, IntxUnpackedToInt8Tensor):
        return parameter.nbytes
    rows = _is_rows(parameter)
    scale = 4 if rows else 2  # XNNPACK keeps the scales of groups in bfloat16
    return parameter.numel() * (8 if rows else 4) // 8 + scale * parameter.scale.numel()


def _is_rows(weight: IntxUnpackedToInt8Tensor) -> bool:
    """Whether it is one of 8 bits, with a scale a row; 4 bits have one a group."""
    return bool(weight.target_dtype == torch.int8)


def rounded(weight: torch.Tensor, bits: int) -> tuple[torch.Tensor, int]:
    """A weight `[O, I]` as the artifact would compute with it, and the bytes it would take."""
    if bits == 4 and weight.shape[1] % GROUP == 0:
        groups = choose_groups(weight)
        return groups.dequantized(), groups.stored_bytes
    return _rows(weight).dequantize(), weight.numel() + 4 * len(weight)


def _packed(
    model: PreTrainedModel, recipe: Recipe, integers: Integers
) -> tuple[PreTrainedModel, QuantizationInfo]:
    twin = copy.deepcopy(model, {id(p): p for p in (*model.parameters(), *model.buffers())})
    packed: dict[str, str] = {}
    embedding = model.get_input_embeddings().weight
    names = {id(p): name for name, p in model.named_parameters()}
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if id(weight) not in names:
            continue
        chosen = recipe.format_of(names[id(weight)])  # a tied LM head goes by the embedding's name
        if isinstance(module, nn.Embedding) and weight is embedding and chosen:
            factor = float(getattr(module, "embed_scale", 1.0))
            twin.set_input_embeddings(QuantizedEmbedding(module.weight, factor))
            packed[f"{name}.weight"] = _ROWS
        elif isinstance(module, nn.Linear) and chosen:
            known = integers.get(names[id(weight)])
            bits = chosen.bits if known is None else known.bits
            layer, packed[f"{name}.weight"] = _packed_linear(module, bits, known)
            twin.set_submodule(name, layer)
    left = [name for name, _ in model.named_parameters() if name not in packed]
    return twin, QuantizationInfo(recipe.name, packed, left)


def _packed_linear(
    layer: nn.Linear, bits: int, known: GroupedWeight | None = None
) -> tuple[nn.Module, str]:
    """The layer over packed weights, and what it is called in the manifest."""
    if bits > 4 or layer.in_features % GROUP:
        return _linear(_rows(layer.weight), layer.bias), _ROWS
    groups = choose_groups(layer.weight) if known is None else take_over(known)
    codes = _linear(_four_bits(groups), layer.bias)
    if groups.offsets is None:
        return codes, _GROUPS
    return OffsetLinear(codes, _linear(_rows(groups.offsets), None)), _OFFSETS


def _linear(weight: IntxUnpackedToInt8Tensor, bias: torch.Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    layer.bias = bias  # type: ignore[assignment]
    return layer


def _rows(weight: torch.Tensor) -> IntxUnpackedToInt8Tensor:
    return IntxUnpackedToInt8Tensor.from_hp(
        weight.detach(), (1, weight.shape[1]), torch.int8, activation_quantization=_PER_TOKEN
    )


def _four_bits(groups: Groups) -> IntxUnpackedToInt8Tensor:
    return IntxUnpackedToInt8Tensor(
        groups.codes,
        groups.scales,
        torch.zeros_like(groups.scales, dtype=torch.int8),
        getattr(torch, "int4"),  # noqa: B009  (not in torch's annotations)
        (1, GROUP),
        torch.float32,
        _PER_TOKEN,
    )
