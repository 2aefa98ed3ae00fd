"""What a backbone needs to be compiled for the HTP; each changes no result.

Letters: L layers, T new tokens, C capacity, D head dimension, V vocabulary, I width, g group.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.onnx.ops import symbolic
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx import operators
from edgeinfinite.export.onnx.passes.quantized_weights import QuantizedLinear
from edgeinfinite.export.onnx.quantize import QuantizedWeight
from edgeinfinite.models.architecture import architecture_of

_MIDDLE = 128


class NewestRow:
    """Which of T rows belongs to the newest token; the graph sets it before the backbone runs."""

    index: torch.Tensor | None = None

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, I]` to `[1, 1, I]`."""
        if self.index is None or x.shape[1] == 1:
            return x
        return x.index_select(1, self.index)


class OnNewestRow(nn.Module):
    """Runs a module on the newest token's row alone.

    Args:
        module: maps `[1, T, I]` to `[1, T, O]`, row by row.
        newest: which row.
    """

    def __init__(self, module: nn.Module, newest: NewestRow) -> None:
        super().__init__()
        self.module, self.newest = module, newest

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, I]` to `[1, 1, O]`."""
        return self.module(self.newest.of(x))


class TableRotary(nn.Module):
    """RoPE's angles from a table: positions in float16 would be wrong beyond 2,048.

    Args:
        rotary: the model's own embedding.
        positions: rows of the table, C of the longest layer.
        spare: further rows, for tokens that only fill a chunk up; nothing reads what they give.
        kinds: the types of layers that the embedding tells apart; (None,) if it doesn't.
    """

    def __init__(
        self, rotary: nn.Module, positions: int, spare: int, kinds: tuple[str | None, ...]
    ) -> None:
        super().__init__()
        self._kinds = kinds
        for number, kind in enumerate(kinds):
            with torch.no_grad():
                every = torch.arange(positions).unsqueeze(0)
                parts = rotary(torch.zeros(1), every, *([] if kind is None else [kind]))
            for name, part in zip(("cos", "sin"), parts, strict=True):
                table = torch.cat((part[0], part[0, -1:].expand(spare, -1))).float()
                self.register_buffer(f"{name}_{number}", table.contiguous(), persistent=False)

    def forward(
        self, _x: torch.Tensor, position_ids: torch.Tensor, layer_type: str | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin `[1, T, R]` of positions `[1, T]`."""
        number = self._kinds.index(layer_type)
        cos, sin = (getattr(self, f"{name}_{number}") for name in ("cos", "sin"))
        rows = position_ids[0]
        return cos.index_select(0, rows).unsqueeze(0), sin.index_select(0, rows).unsqueeze(0)


class CodedEmbedding(nn.Module):
    """nn.Embedding over a table of bytes: Gather of codes, Gather of scales, Mul.

    The HTP has no GatherBlockQuantized. Its Gather reads a table of bytes that have one scale, 1.

    Args:
        weight: `[V, I]`.
        factor: what some models (Gemma) multiply an embedding with.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    unit: torch.Tensor
    middle: torch.Tensor

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__()
        if weight.zeros is not None or weight.offsets is not None:
            raise EdgeInfiniteError("an embedding with zero points can't be compiled for the HTP")
        self.group = weight.format.group
        shift = _MIDDLE - 2 ** (weight.format.bits - 1)
        self.register_buffer("codes", weight.codes + shift)
        self.register_buffer("scales", weight.scales * factor)
        self.register_buffer("unit", torch.tensor(1.0))
        self.register_buffer("middle", torch.tensor(_MIDDLE, dtype=torch.uint8))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """`[1, T]` to `[1, T, I]`."""
        rows = functional.embedding(tokens, self._decoded(self.codes))
        rows = self._decoded(self._coded(rows))
        scales = functional.embedding(tokens, self.scales).unsqueeze(-1)
        return (rows.unflatten(-1, (-1, self.group)) * scales).flatten(-2)

    def _decoded(self, codes: torch.Tensor) -> torch.Tensor:
        return self._convert("DequantizeLinear", codes, torch.float32)

    def _coded(self, values: torch.Tensor) -> torch.Tensor:
        return self._convert("QuantizeLinear", values, torch.uint8)

    def _convert(self, operator: str, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        inputs = [x, self.unit, self.middle]
        return symbolic(f"::{operator}", inputs, {}, dtype=dtype, shape=list(x.shape), version=19)


class WholeGroupLinear(nn.Module):
    """A `QuantizedLinear` with offsets whose input is filled up to whole groups with zeros.

    The HTP's MatMulNBits wants its inputs to be a multiple of the group.

    Args:
        linear: with offsets.
    """

    def __init__(self, linear: QuantizedLinear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., I]` to `[..., O]`."""
        linear = self.linear
        sums = x.unflatten(-1, (linear.offsets, linear.group)).sum(-1)
        sums = functional.pad(sums, (0, -linear.offsets % linear.group))
        wide = torch.cat((x, sums), -1)
        return operators.matmul_nbits(
            wide,
            linear.codes,
            linear.scales,
            linear.zeros,
            linear.bias,
            inputs=wide.shape[-1],
            bits=linear.bits,
            group=linear.group,
        )


def newest_row_only(model: PreTrainedModel) -> NewestRow:
    """The last layer's output and MLP, the last norm and the LM head read the newest row alone.

    As `passes.last_token`, where the newest row is always the last one. The residual additions
    broadcast it; the other rows then hold wrong values, which nothing reads.

    Raises:
        EdgeInfiniteError: the last layer's modules or the norm have other names.
    """
    decoder: Any = model.get_decoder()
    last, newest = decoder.layers[-1], NewestRow()
    attention = last.self_attn
    owners = ((attention, "o_proj"), (last, "mlp"), (decoder, "norm"))
    for owner, name in owners:
        if not isinstance(getattr(owner, name, None), nn.Module):
            raise EdgeInfiniteError(
                f"{type(model).__name__} can't be compiled for the HTP: it has no {name} where "
                "Llama has it; use --target cpu"
            )
    for owner, name in owners:
        setattr(owner, name, OnNewestRow(getattr(owner, name), newest))
    return newest


def tabulate_rotary(model: PreTrainedModel, positions: int, spare: int) -> None:
    """Replaces the model's rotary embedding by a table, see `TableRotary`."""
    decoder: Any = model.get_decoder()
    types = getattr(model.config.get_text_config(), "layer_types", None) or []
    by_type = architecture_of(model).rotary_by_type
    kinds = tuple(dict.fromkeys(types)) if by_type else (None,)
    decoder.rotary_emb = TableRotary(decoder.rotary_emb, positions, spare, kinds)


def fill_groups(model: PreTrainedModel) -> int:
    """Replaces every `QuantizedLinear` with offsets, see `WholeGroupLinear`; returns how many."""
    found = [
        (parent, name, module)
        for parent in model.modules()
        for name, module in parent.named_children()
        if isinstance(module, QuantizedLinear) and module.offsets
    ]
    for parent, name, module in found:
        setattr(parent, name, WholeGroupLinear(module))
    return len(found)


def code_embedding(model: PreTrainedModel, weights: dict[str, QuantizedWeight]) -> None:
    """Replaces a quantized embedding, of any number of bits, by `CodedEmbedding`."""
    swapped: Any = model.get_input_embeddings()
    if isinstance(swapped, nn.Embedding):
        return
    name = next(n for n in weights if n.endswith("embed_tokens.weight"))
    model.set_input_embeddings(CodedEmbedding(weights[name], swapped.factor))
