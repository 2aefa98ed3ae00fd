"""How a recipe's formats are packed for XNNPACK, by torchao.

XNNPACK has symmetric weights only: 4 bits in groups of 32, or 8 bits with one scale a row. A
recipe's 4 bits become the former, its 8 bits the latter. The inputs of such layers are quantized to
8 bits, token by token, while they run.
"""

from __future__ import annotations

import copy

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (embedding_byte)
import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    IntxUnpackedToInt8Tensor,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.utils import unwrap_tensor_subclass
from transformers import PreTrainedModel

from edgeinfinite.export.recipes import Recipe
from edgeinfinite.runtime_py.manifest import QuantizationInfo

GROUP = 32
_ROWS = "int8 symmetric, one scale a row"
_GROUPS = f"int4 symmetric g{GROUP}"


class QuantizedEmbedding(nn.Module):
    """An embedding of int8 rows with one scale each.

    Args:
        weight: `[V, d]` float32.
    """

    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        rows = IntxUnpackedToInt8Tensor.from_hp(weight.detach(), (1, weight.shape[1]), torch.int8)
        self.register_buffer("weight", rows.qdata)
        self.register_buffer("scales", rows.scale.flatten())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Rows `[1, T, d]` float32 of tokens `[1, T]` int64."""
        rows: torch.Tensor = torch.ops.quantized_decomposed.embedding_byte.default(
            self.weight, self.scales, None, -128, 127, tokens
        )
        return rows


class RoundedInputLinear(nn.Linear):
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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, out]` of x `[1, T, in]`, which is rounded to 8 bits token by token first."""
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


def quantized(model: PreTrainedModel, recipe: Recipe) -> tuple[PreTrainedModel, QuantizationInfo]:
    """A copy of the model for tracing; nothing that isn't quantized is duplicated.

    Args:
        model: after `attach`; left as it is.
        recipe: which weights get how many bits.

    Returns:
        The copy, and what became of each weight by name.
    """
    twin, info = _packed(model, recipe)
    unwrap_tensor_subclass(twin)  # plain tensors, which can be traced
    return twin, info


def reference(model: PreTrainedModel, recipe: Recipe) -> PreTrainedModel:
    """A copy of the model that computes as the artifact does, in plain PyTorch.

    Args:
        model, recipe: as for `quantized`.
    """
    twin, _ = _packed(model, recipe)
    for name, module in list(twin.named_modules()):
        if isinstance(getattr(module, "weight", None), IntxUnpackedToInt8Tensor):
            twin.set_submodule(name, RoundedInputLinear(module.weight, module.bias))
    return twin


def _packed(model: PreTrainedModel, recipe: Recipe) -> tuple[PreTrainedModel, QuantizationInfo]:
    twin = copy.deepcopy(model, {id(p): p for p in (*model.parameters(), *model.buffers())})
    packed: dict[str, str] = {}
    by_config: dict[str, set[str]] = {_ROWS: set(), _GROUPS: set()}
    embedding = model.get_input_embeddings().weight
    names = {id(p): name for name, p in model.named_parameters()}
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if id(weight) not in names:
            continue
        chosen = recipe.format_of(names[id(weight)])  # a tied LM head goes by the embedding's name
        if isinstance(module, nn.Embedding) and weight is embedding and chosen:
            twin.set_input_embeddings(QuantizedEmbedding(module.weight))
            packed[f"{name}.weight"] = _ROWS
        elif isinstance(module, nn.Linear) and chosen:
            fits = chosen.bits == 4 and module.in_features % GROUP == 0
            packed[f"{name}.weight"] = _GROUPS if fits else _ROWS
            by_config[packed[f"{name}.weight"]].add(name)
    for kind, layers in by_config.items():
        if layers:
            quantize_(twin, _CONFIGS[kind], lambda _, name, layers=layers: name in layers)
    for module in twin.modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, IntxUnpackedToInt8Tensor):
            weight.scale = weight.scale.float()  # bfloat16's values, in a type that numpy has
    left = [name for name, _ in model.named_parameters() if name not in packed]
    return twin, QuantizationInfo(recipe.name, packed, left)


_CONFIGS = {
    _ROWS: Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int8, weight_granularity=PerAxis(0)
    ),
    _GROUPS: Int8DynamicActivationIntxWeightConfig(
        weight_dtype=getattr(torch, "int4"),  # noqa: B009  (not in torch's annotations)
        weight_granularity=PerGroup(GROUP),
        weight_scale_dtype=torch.bfloat16,  # as XNNPACK stores them: the reference agrees
    ),
}
