"""The layers that stand in a model's place when its weights are packed for XNNPACK.

Letters: T tokens, O outputs, I inputs, n groups in a row, V vocabulary, d width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (embedding_byte)
import torch
from torch import nn
from torchao.quantization import IntxUnpackedToInt8Tensor

from edgeinfinite.export.executorch.groups import GROUP, SUM_FACTOR, padding
from edgeinfinite.export.parity.sensitivity import RoundsInput


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


class RefinedLinear(nn.Module):
    """A layer of 4 bits with more for its first inputs, or with offsets: W x + R x_first + B s.

    One product over `[x, x_first, s]`: with the codes of W, those of R, the error that W leaves in
    its first columns, and those of the groups' offsets B, which are multiplied with the sums s of x
    over each group. A second product beside the first would cost a token more than its numbers do:
    each operator waits for all threads (experiments/quantization.md).

    Args:
        codes: the layer over all of them (`groups.refined`).
        inputs: I.
        first: inputs that come twice for R.
        sums: whether there are offsets.
    """

    def __init__(self, codes: nn.Linear, inputs: int, first: int, *, sums: bool) -> None:
        super().__init__()
        self.codes = codes
        self.sums = sums
        self._groups = inputs // GROUP if sums else 0
        # Codes of 0 fill the sums up to full groups: some of the inputs stand there.
        self._again = first + (padding(inputs) if sums else 0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, I]` to `[1, T, O]`."""
        parts = [x, x[..., : self._again]] if self._again else [x]
        if self._groups:
            parts.append(x.reshape(1, -1, self._groups, GROUP).sum(-1) * SUM_FACTOR)
        result: torch.Tensor = self.codes(torch.cat(parts, dim=-1))
        return result


class PartedLinear(nn.Module):
    """An LM head of 8 bits in two parts: each rounds its inputs on a scale of its own.

    Args:
        leading: over the first inputs, the largest, with the bias.
        rest: over the others.
    """

    def __init__(self, leading: nn.Linear, rest: nn.Linear) -> None:
        super().__init__()
        self.leading = leading
        self.rest = rest

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, I]` to `[1, T, O]`."""
        first = self.leading.in_features
        result: torch.Tensor = self.leading(x[..., :first]) + self.rest(x[..., first:])
        return result


class QuantizedEmbedding(nn.Module):
    """An embedding of int8 rows with one scale each, or one for each of several layers.

    Args:
        weight: `[V, d]` float32.
        factor: what some models (Gemma) multiply an embedding with.
        width: numbers that share a scale, d by default.
    """

    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self, weight: torch.Tensor, factor: float = 1.0, width: int = 0) -> None:
        super().__init__()
        self._factor = factor
        block = 1, width or weight.shape[1]
        rows = IntxUnpackedToInt8Tensor.from_hp(weight.detach(), block, torch.int8)
        self.register_buffer("weight", rows.qdata)
        self.register_buffer("scales", rows.scale if width else rows.scale.flatten())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Rows `[1, T, d]` float32 of tokens `[1, T]` int64."""
        rows: torch.Tensor = torch.ops.quantized_decomposed.embedding_byte.default(
            self.weight, self.scales, None, -128, 127, tokens
        )
        return rows if self._factor == 1.0 else rows * self._factor


class PartedEmbedding(nn.Module):
    """Two tables side by side, which an LM head divided by its inputs shares.

    Args:
        leading: the first columns.
        rest: the others.
    """

    def __init__(self, leading: QuantizedEmbedding, rest: QuantizedEmbedding) -> None:
        super().__init__()
        self.leading = leading
        self.rest = rest

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Rows `[1, T, d]` float32 of tokens `[1, T]` int64."""
        return torch.cat((self.leading(tokens), self.rest(tokens)), dim=-1)


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
