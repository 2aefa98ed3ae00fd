"""Embeddings over groups of integers, for tracing.

Letters: V vocabulary, I inputs of a row, n groups of a row, B batch, T tokens.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from edgeinfinite.export.onnx import operators
from edgeinfinite.export.onnx.passes import split_head
from edgeinfinite.export.onnx.passes.narrow_codes import planes
from edgeinfinite.export.onnx.quantize import QuantizedWeight


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


class GatheredEmbedding(nn.Module):
    """nn.Embedding that looks codes and scales up and multiplies those alone, for tracing.

    The table stays on disk as it is. GatherBlockQuantized computes the same numbers, but takes
    scales in float32: onnxruntime makes them when it loads the graph, of every word.

    Args:
        weight: `[V, I]`, symmetric.
        factor: what some models (Gemma) multiply an embedding with.
        middle: the code that stands for zero.
    """

    scales: torch.Tensor

    def __init__(self, weight: QuantizedWeight, factor: float, middle: int) -> None:
        super().__init__()
        self.factor, self.group, self.middle = factor, weight.format.group, middle
        half = weight.scales.half()
        exact = torch.equal(half.float(), weight.scales)
        self.register_buffer("scales", half if exact else weight.scales)

    def codes_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """Codes `[B, T, I]` int32 of tokens `[B, T]`."""
        raise NotImplementedError

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """`[B, T]` to `[B, T, I]`."""
        centred = self.codes_of(tokens) - self.middle
        groups = centred.float().unflatten(-1, (-1, self.group))
        scales = functional.embedding(tokens, self.scales).float()
        return (groups * scales.unsqueeze(-1)).flatten(-2) * self.factor


class NarrowEmbedding(GatheredEmbedding):
    """A table of 5 or 6 bits, whose bytes are the LM head's planes.

    `narrow_codes` stores the head's codes in the same two planes. The head's are put together when
    the graph is loaded; here that happens to the rows that are looked up.

    Args:
        weight, factor: see `GatheredEmbedding`.
    """

    low: torch.Tensor
    high: torch.Tensor
    table: torch.Tensor

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__(weight, factor, 2 ** (weight.format.bits - 1))
        low, high, table = planes(weight.codes.numpy(), weight.format.bits)
        self.register_buffer("low", torch.from_numpy(low))
        self.register_buffer("high", torch.from_numpy(high))
        self.register_buffer("table", torch.from_numpy(table))

    def codes_of(self, tokens: torch.Tensor) -> torch.Tensor:
        pairs = functional.embedding(tokens, self.low).int()
        low = torch.stack((pairs % 16, pairs // 16), -1).flatten(-2)
        rest = functional.embedding(tokens, self.high).int()
        return low + functional.embedding(rest, self.table).flatten(-2).int()


class LargeEmbedding(GatheredEmbedding):
    """A large table of 8 bits, whose bytes are the LM head's.

    Args:
        weight, factor: see `GatheredEmbedding`.
    """

    codes: torch.Tensor

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__(weight, factor, 2**7)
        self.register_buffer("codes", weight.packed_codes().flatten(1))

    def codes_of(self, tokens: torch.Tensor) -> torch.Tensor:
        return functional.embedding(tokens, self.codes).int()


class PackedEmbedding(GatheredEmbedding):
    """A table of 4 bits, two codes a byte, that is never in memory whole.

    Args:
        weight: `[V, I]`; each group may have a zero point.
        factor: see `GatheredEmbedding`.
    """

    codes: torch.Tensor
    zeros: torch.Tensor | None

    def __init__(self, weight: QuantizedWeight, factor: float = 1.0) -> None:
        super().__init__(weight, factor, 0 if weight.zeros is not None else 2**3)
        self.register_buffer("codes", weight.packed_codes().flatten(1))
        self.register_buffer("zeros", weight.packed_zeros())

    def codes_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """Less the zero points, where there are any."""
        codes = _halves(tokens, self.codes)
        if self.zeros is None:
            return codes
        groups = codes.unflatten(-1, (-1, self.group))
        zeros = _halves(tokens, self.zeros)[..., : groups.shape[-2]]
        return (groups - zeros.unsqueeze(-1)).flatten(-2)


def _halves(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Rows of 4-bit numbers, int32 `[B, T, 2 C]`, of a table of bytes `[V, C]`."""
    pairs = functional.embedding(tokens, table).int()
    return torch.stack((pairs % 16, pairs // 16), -1).flatten(-2)


Embedding = QuantizedEmbedding | NarrowEmbedding | LargeEmbedding | PackedEmbedding


def embedding_kind(weight: QuantizedWeight, *, of_layers: bool) -> type[Embedding]:
    """The module for a table.

    Args:
        weight: `[V, I]`.
        of_layers: whether it holds the embeddings of every layer (`models/layer_inputs.py`): the
            largest weight of the model, which no head shares.
    """
    if weight.format.bits in (5, 6):
        return NarrowEmbedding
    bytewise = weight.format.bits == 8 and weight.zeros is None
    if of_layers:
        return LargeEmbedding if bytewise else PackedEmbedding
    large = bytewise and weight.codes.numel() > split_head.LARGE_BYTES
    return LargeEmbedding if large else QuantizedEmbedding
