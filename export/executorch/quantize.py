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
    judged_rows,
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
from edgeinfinite.models.layer_inputs import table_of
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

_ROWS = "int8 symmetric, one scale a row"
_ROWS_BY_LAYER = "int8 symmetric, one scale a row and layer"
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
    """Bytes of all weights in the program, without rounding them.

    A tied LM head's rows of 8 bits are the embedding's own.

    Args:
        model, recipe, integers: as for `quantized`; codes aren't looked at.
    """
    names = {id(p): name for name, p in model.named_parameters()}
    left, known, total = {id(p): p.nbytes for p in model.parameters()}, integers or {}, 0
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings()
    for module in model.modules():
        if not isinstance(module, nn.Linear | nn.Embedding):
            continue
        weight = module.weight
        chosen = recipe.format_of(names[id(weight)])
        is_table = isinstance(module, nn.Embedding) and weight is embedding
        by_layer = module is table_of(model)
        if chosen is None or (isinstance(module, nn.Embedding) and not (is_table or by_layer)):
            continue
        left.pop(id(weight), None)
        if by_layer:
            total += weight.numel() + 4 * weight.numel() // _layer_width(model)
            continue
        if is_table:
            total += _rows_bytes(weight, chosen.leading)
            continue
        size, nodes, rows = _linear_bytes(weight, chosen, known.get(names[id(weight)]))
        total += nodes if rows and module is head and weight is embedding else size + nodes
    return total + sum(left.values())


def _linear_bytes(
    weight: torch.Tensor, form: WeightFormat, known: GroupedWeight | None
) -> tuple[int, int, bool]:
    """What `_packed_linear` makes of a weight.

    Returns:
        Its bytes, those of the nodes beside it, and whether it is rows of 8 bits.
    """
    bits = form.bits if known is None else known.bits
    if (form.leading and bits == 8) or bits > 4 or weight.shape[1] % GROUP:
        leading = form.leading if bits == 8 else 0
        return _rows_bytes(weight, leading), _DIVIDED_BYTES if leading else 0, True
    # Every row takes the same bytes, and a few of them decide about offsets in any case.
    some = judged_rows(weight)
    if form.leading or form.offsets:
        nodes = _DIVIDED_BYTES + (_OFFSETS_BYTES if form.offsets else 0)
        groups = _refined(some, form)
    else:
        groups = choose_groups(some) if known is None else take_over(_telling(known, len(some)))
        nodes = 0 if groups.offsets is None else _SECOND_PRODUCT_BYTES
    return groups.stored_bytes * len(weight) // len(some), nodes, False


def _telling(weight: GroupedWeight, rows: int) -> GroupedWeight:
    """Some rows of a weight, with a negative scale among them if it has one."""
    return weight.rows(weight.scales.amin(1).argsort()[:rows])


def _rows_bytes(weight: torch.Tensor, leading: int) -> int:
    """Bytes of rows of 8 bits, which may be divided in two with scales of their own."""
    return weight.numel() + 4 * len(weight) * (2 if leading else 1)


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
        elif chosen and module is table_of(model):
            factor = float(getattr(module, "embed_scale", 1.0))
            table = QuantizedEmbedding(module.weight, factor, _layer_width(model))
            twin.set_submodule(name, table)
            packed[f"{name}.weight"] = _ROWS_BY_LAYER
        elif isinstance(module, nn.Linear) and chosen:
            known = integers.get(names[id(weight)])
            layer, packed[f"{name}.weight"] = _packed_linear(module, chosen, known)
            twin.set_submodule(name, layer)
    left = [name for name, _ in model.named_parameters() if name not in packed]
    return twin, QuantizationInfo(recipe.name, packed, left)


def _layer_width(model: PreTrainedModel) -> int:
    """P, what each layer gets of a row of the table of embeddings for every layer."""
    width: int = model.config.get_text_config().hidden_size_per_layer_input
    return width


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
