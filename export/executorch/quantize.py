"""How a recipe's formats are packed for XNNPACK, as torchao's tensors.

XNNPACK has symmetric weights only: 4 bits in groups of 32, or 8 bits with one scale a row. A
recipe's 4 bits become the former, with offsets where they pay (`groups.py`), its 5, 6 and 8 bits
the latter. The first inputs of a weight of 4 bits may have 8, as two groups of 4, and its groups
offsets in the same product (`RefinedLinear`).
The inputs of such layers are quantized to 8 bits, token by token, while they run.

Letters: T tokens, O outputs, I inputs, n groups in a row, V vocabulary, d width.
"""

from __future__ import annotations

import copy

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
from edgeinfinite.export.executorch.groups import (
    GROUP,
    SCALE_TYPE,
    Groups,
    choose_groups,
    refined,
    stepped_groups,
    symmetric_groups,
    take_over,
)
from edgeinfinite.export.executorch.layers import (
    OffsetLinear,
    PartedEmbedding,
    PartedLinear,
    QuantizedEmbedding,
    RefinedLinear,
    RoundedInputLinear,
)
from edgeinfinite.export.mixing.grids import offset_steps
from edgeinfinite.export.recipes import Recipe, WeightFormat
from edgeinfinite.models.grouped_weight import GroupedWeight

_ROWS = "int8 symmetric, one scale a row"
_GROUPS = f"int4 symmetric g{GROUP}"
_OFFSETS = f"{_GROUPS} with int8 offsets"
_DIVIDED_BYTES = 800
"""What dividing a weight's inputs adds to the graphs of tokens: nodes and names."""

_OFFSETS_BYTES = 1_000
"""What the sums for a weight's offsets add to them."""

_SECOND_PRODUCT_BYTES = 2_500
"""What offsets with a product of their own add to them."""

_PER_TOKEN = ActivationQuantization.INT8_ASYM_PER_TOKEN


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
    shared = _shared(head) if tied else set()
    parted = [m for m in twin.modules() if isinstance(m, PartedLinear | RefinedLinear)]
    divided = len(parted) * _DIVIDED_BYTES
    divided += sum(isinstance(m, RefinedLinear) and m.sums for m in parted) * _OFFSETS_BYTES
    seconds = sum(isinstance(module, OffsetLinear) for module in twin.modules())
    divided += seconds * _SECOND_PRODUCT_BYTES
    for module in twin.modules():
        if module in shared:
            continue
        if isinstance(module, QuantizedEmbedding):
            sizes[id(module)] = sum(buffer.nbytes for buffer in module.buffers(recurse=False))
        for parameter in module.parameters(recurse=False):
            sizes[id(parameter)] = _bytes(parameter)
    return sum(sizes.values()) + divided


def _shared(head: nn.Module) -> set[nn.Module]:
    """The parts of a tied LM head whose bytes are the embedding's: rows of 8 bits, all or none."""
    parts = [head.leading, head.rest] if isinstance(head, PartedLinear) else [head]
    weights = [getattr(part, "weight", None) for part in parts]  # offsets: codes a level below
    rows = all(isinstance(w, IntxUnpackedToInt8Tensor) and _is_rows(w) for w in weights)
    return set(parts) if rows else set()


def _bytes(parameter: torch.Tensor) -> int:
    if not isinstance(parameter, IntxUnpackedToInt8Tensor):
        return parameter.nbytes
    rows = _is_rows(parameter)
    scale = 4 if rows else 2  # XNNPACK keeps the scales of groups in bfloat16
    return parameter.numel() * (8 if rows else 4) // 8 + scale * parameter.scale.numel()


def _is_rows(weight: IntxUnpackedToInt8Tensor) -> bool:
    """Whether it is one of 8 bits, with a scale a row; 4 bits have one a group."""
    return bool(weight.target_dtype == torch.int8)


def held(groups: Groups) -> tuple[torch.Tensor, int]:
    """A weight `[O, I]` as the artifact computes with these codes, and the bytes it takes."""
    more = 0 if groups.offsets is None else _SECOND_PRODUCT_BYTES
    return groups.dequantized(), groups.stored_bytes + more


def rounded(weight: torch.Tensor, form: WeightFormat) -> tuple[torch.Tensor, int]:
    """A weight `[O, I]` as the artifact would compute with it, and the bytes it would take."""
    first = form.leading
    if form.bits == 4 and weight.shape[1] % GROUP == 0:
        if not first and not form.offsets:
            return held(choose_groups(weight))
        both = _refined(weight, form)
        more = _DIVIDED_BYTES + (_OFFSETS_BYTES if form.offsets else 0)
        return both.folded(weight.shape[1], first), both.stored_bytes + more
    if not first:
        return _rows(weight).dequantize(), weight.numel() + 4 * len(weight)
    parts = [_rows(part).dequantize() for part in (weight[:, :first], weight[:, first:])]
    scales = 2 * 4 * len(weight)
    return torch.cat(parts, dim=1), weight.numel() + scales + _DIVIDED_BYTES


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
            table, packed[f"{name}.weight"] = _packed_table(module.weight, factor, chosen.leading)
            twin.set_input_embeddings(table)
        elif isinstance(module, nn.Linear) and chosen:
            known = integers.get(names[id(weight)])
            layer, packed[f"{name}.weight"] = _packed_linear(module, chosen, known)
            twin.set_submodule(name, layer)
    left = [name for name, _ in model.named_parameters() if name not in packed]
    return twin, QuantizationInfo(recipe.name, packed, left)


def _packed_linear(
    layer: nn.Linear, form: WeightFormat, known: GroupedWeight | None = None
) -> tuple[nn.Module, str]:
    """The layer over packed weights, and what it is called in the manifest."""
    first, weight, bits = form.leading, layer.weight, form.bits if known is None else known.bits
    if first and bits == 8:
        leading = _linear(_rows(weight[:, :first]), layer.bias)
        return PartedLinear(leading, _linear(_rows(weight[:, first:]), None)), str(form)
    if bits > 4 or layer.in_features % GROUP:
        return _linear(_rows(weight), layer.bias), _ROWS
    exact = None if known is None else take_over(known)
    if first or form.offsets:
        codes = _linear(_four_bits(_refined(weight, form, exact)), layer.bias)
        return RefinedLinear(codes, weight.shape[1], first, sums=form.offsets), str(form)
    groups = exact or choose_groups(weight)
    codes = _linear(_four_bits(groups), layer.bias)
    if groups.offsets is None:
        return codes, _GROUPS
    return OffsetLinear(codes, _linear(_rows(groups.offsets), None)), _OFFSETS


def _refined(weight: torch.Tensor, form: WeightFormat, rest: Groups | None = None) -> Groups:
    """Codes of a weight `[O, I]` with more for its first inputs, offsets, or both.

    Args:
        weight: in floats.
        form: of 4 bits.
        rest: of all but the first inputs, if they are chosen already.
    """
    first, others = weight[:, : form.leading], weight[:, form.leading :]
    if not form.offsets:
        return refined(first, rest or symmetric_groups(others))
    steps = offset_steps(others.detach().float(), GROUP, SCALE_TYPE)
    return refined(first, rest or stepped_groups(others), steps)


def _packed_table(weight: torch.Tensor, factor: float, first: int) -> tuple[nn.Module, str]:
    """An embedding, and what it is called in the manifest."""
    if not first:
        return QuantizedEmbedding(weight, factor), _ROWS
    leading, rest = weight[:, :first], weight[:, first:]
    tables = QuantizedEmbedding(leading, factor), QuantizedEmbedding(rest, factor)
    return PartedEmbedding(*tables), str(WeightFormat(8, leading=first))


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
