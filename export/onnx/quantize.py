"""Weights as groups of integers: choosing codes, scales and zero points; packing them.

Letters: O outputs (rows), I inputs (columns), g group, n = I / g groups in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from edgeinfinite.export.one_thread import one_thread
from edgeinfinite.export.recipes import WeightFormat, computed_bits
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

_SHRINKS = (0.88, 0.94, 1.0, 1.04)
"""Ranges tried for a group of 4-bit codes, as a share of the full range of its weights."""

_OFFSETS_PAY = 0.25
"""Offsets are kept if they bring the squared error of a weight below this share. They do where the
checkpoint was quantized before in the same groups (GGUF's Q4_1), where they make it nearly exact:
without them 4 bits cost the demo model 0.19 nats per token, with them 0.0007. On a checkpoint that
was never quantized they gain nothing, and aren't stored."""

_JUDGED_ROWS = 32

_PART = 2**17
"""Numbers of a weight that are rounded at a time: half a MiB of float32 stays in a core's cache,
and malloc has it at hand. 64 MiB are asked of the system each time: 94 ns a weight, now 17."""

_HALF_LOSS = 2.0**-11
"""Half a step of a normal half-precision number, relative."""

_TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True)
class QuantizedWeight:
    """w = (code - zero) * scale + offset.

    The operators compute with 4 and 8 bits: codes of 5 and 6 bits are packed as codes of 8.

    Args:
        format: bits and group.
        codes: `[O, I]` uint8, 0 .. 2 ** bits - 1.
        scales: `[O, n]` float32.
        zeros: `[O, n]` uint8; None means the middle of the range, 2 ** (bits - 1).
        offsets: `[O, n]`, padded with zeros to whole groups and quantized likewise; None for none.
    """

    format: WeightFormat
    codes: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor | None
    offsets: QuantizedWeight | None = None

    def __str__(self) -> str:
        return f"{self.format}{' with offsets' if self.offsets else ''}"

    def dequantized(self) -> torch.Tensor:
        """The weight `[O, I]` that the artifact computes with, float32."""
        groups = self.codes.unflatten(1, (-1, self.format.group)).float()
        middle = float(2 ** (self.format.bits - 1))
        zeros = middle if self.zeros is None else self.zeros.unsqueeze(2).float()
        weight = (groups - zeros) * self.scales.unsqueeze(2)
        if self.offsets is not None:
            weight += self.offsets.dequantized()[:, : weight.shape[1], None]
        return weight.flatten(1)

    def rows(self, order: slice | torch.Tensor) -> QuantizedWeight:
        """The same weight with its rows in another order, or some of them."""
        zeros = None if self.zeros is None else self.zeros[order]
        offsets = None if self.offsets is None else self.offsets.rows(order)
        return QuantizedWeight(self.format, self.codes[order], self.scales[order], zeros, offsets)

    def widened(self) -> QuantizedWeight:
        """Offsets as further columns, to be multiplied with the sums of x over each group."""
        if self.offsets is None:
            return self
        assert self.zeros is not None and self.offsets.zeros is not None
        return QuantizedWeight(
            self.format,
            torch.cat((self.codes, self.offsets.codes), 1),
            torch.cat((self.scales, self.offsets.scales), 1),
            torch.cat((self.zeros, self.offsets.zeros), 1),
        )

    @property
    def packed_bits(self) -> int:
        """Of a packed code: 4 or 8."""
        return computed_bits(self.format.bits)

    @property
    def stored_bytes(self) -> int:
        """What it takes in the file."""
        return self.bytes_of(len(self.codes))

    def bytes_of(self, rows: int, *, halves: bool = True) -> int:
        """What so many rows of its kind take in the file.

        Args:
            halves: whether the scales of the other rows are.
        """
        parts = [self] if self.offsets is None else [self, self.offsets]
        groups = rows * sum(part.scales.shape[1] for part in parts)
        halves = halves and all(_is_half(part.scales) for part in parts)
        zeros = 0 if self.zeros is None else groups * self.packed_bits // 8
        codes = rows * sum(part.codes.shape[1] for part in parts)
        return codes * self.format.bits // 8 + groups * (2 if halves else 4) + zeros

    def packed_codes(self) -> torch.Tensor:
        """`[O, n, g * packed_bits / 8]` uint8, the first of two 4-bit codes in the low half."""
        groups = self.codes.unflatten(1, (-1, self.format.group))
        if self.format.bits == 4:
            return _pack(groups)
        # Without zero points the operator takes 128 for zero.
        return groups if self.zeros is not None else groups + (128 - 2 ** (self.format.bits - 1))

    def packed_zeros(self) -> torch.Tensor | None:
        """`[O, ceil(n * packed_bits / 8)]` uint8."""
        if self.zeros is None or self.packed_bits == 8:
            return self.zeros
        return _pack(functional.pad(self.zeros, (0, self.zeros.shape[1] % 2)))


def can_quantize(weight: torch.Tensor, format: WeightFormat) -> bool:
    """Whether the weight `[O, I]` is a matrix that divides into groups."""
    return weight.dim() == 2 and weight.shape[1] % format.group == 0


def judged_rows(weight: torch.Tensor) -> torch.Tensor:
    """The rows of a weight `[O, ...]` by which offsets are judged; of those it is all."""
    return weight[:: max(1, len(weight) // _JUDGED_ROWS)]


def quantize(
    weight: torch.Tensor, format: WeightFormat, *, offsets: bool = False
) -> QuantizedWeight:
    """Rounds a weight `[O, I]` to groups of integers with the least squared error.

    8 bits: the scale that just holds the largest weight. Fewer: of some narrower ranges, and of the
    two whole numbers next to each range's zero point, the one with the least squared error,
    the scale refitted by least squares.

    Args:
        offsets: add them where they pay; for asymmetric formats.
    """
    with one_thread():  # parts of half a MiB: two threads take as long, and twice the CPU time
        return _quantized(weight, format, offsets=offsets)


def _quantized(weight: torch.Tensor, format: WeightFormat, *, offsets: bool) -> QuantizedWeight:
    # A large table in half precision becomes float32 part by part.
    groups = weight.detach().unflatten(1, (-1, format.group))
    if format.bits == 8:
        largest = groups.abs().amax(2).float()
        # Any scale suits a group of zeros, such as the padding token's; the least number of float32
        # wouldn't let the scales of the whole weight be halves.
        scales = _half(torch.where(largest == 0, 1.0, (largest / 127.0).clamp_min(_TINY)))
        codes = torch.empty(groups.shape, dtype=torch.uint8)
        for rows in _parts(groups):
            codes[rows] = (
                (groups[rows].float() / scales[rows].unsqueeze(2)).round_().add_(128.0).byte()
            )
        return QuantizedWeight(format, codes.flatten(1), scales, None)
    if offsets and not format.symmetric and _offsets_pay(groups, format):
        return _with_offsets(groups, format)
    return _best(groups, format, _SHRINKS)


def take_over(weight: GroupedWeight) -> QuantizedWeight:
    """Integers that were chosen elsewhere, as they are; levels become zero points and offsets.

    Scales are rounded to half precision, which changes none of a file's that are halves.
    """
    shape = WeightFormat(weight.bits, weight.group, weight.symmetric)
    scales = _half(weight.scales)
    if weight.levels is None:
        return QuantizedWeight(shape, weight.codes, scales, None)
    return _leveled(shape, weight.codes, scales, weight.levels)


def taken_bytes(weight: GroupedWeight) -> int:
    """What `take_over` of a weight takes in the file; its codes aren't looked at."""
    row, scales = 0, _half(weight.scales)
    if weight.levels is not None:  # every row has offsets if one needs them
        _, rest = _zeros(weight.bits, scales, weight.levels)
        row = int((rest.abs() - _HALF_LOSS * scales.abs()).amax(1).argmax())
    one = take_over(weight.rows(slice(row, row + 1)))
    return one.bytes_of(len(weight.scales), halves=_is_half(scales))


def _offsets_pay(groups: torch.Tensor, format: WeightFormat) -> bool:
    """Judged by some of the rows; groups `[O, n, g]`."""
    some = judged_rows(groups).float()

    def error(quantized: QuantizedWeight) -> float:
        return float((some.flatten(1) - quantized.dequantized()).square().sum())

    plain = error(_best(some, format, _SHRINKS))
    return error(_with_offsets(some, format)) < _OFFSETS_PAY * plain


def _with_offsets(groups: torch.Tensor, format: WeightFormat) -> QuantizedWeight:
    """Each group's own range exactly: zero points take its whole part, offsets the rest."""
    groups, top = groups.float(), 2**format.bits - 1
    low, high = groups.aminmax(dim=2, keepdim=True)
    scales = _half(((high - low) / top).clamp_min(_TINY))
    codes = ((groups - low) / scales).round()
    codes = codes.flatten(1).to(torch.uint8)
    return _leveled(format, codes, scales.squeeze(2), low.squeeze(2))


def _leveled(
    format: WeightFormat, codes: torch.Tensor, scales: torch.Tensor, levels: torch.Tensor
) -> QuantizedWeight:
    """Codes `[O, I]` whose groups have levels `[O, n]`; no offsets where zero points do."""
    zeros, rest = _zeros(format.bits, scales, levels)
    offsets = None
    if bool((rest.abs() > _HALF_LOSS * scales.abs()).any()):
        padded = functional.pad(rest, (0, -rest.shape[1] % format.group))
        offsets = _best(padded.unflatten(1, (-1, format.group)), format, _SHRINKS)
    return QuantizedWeight(format, codes, scales, zeros.to(torch.uint8), offsets)


def _zeros(
    bits: int, scales: torch.Tensor, levels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Zero points `[O, n]`, as floats, and what they leave of the levels."""
    steps = torch.where(scales == 0, _TINY, scales)
    zeros = (-levels / steps).round().clamp(0, 2**bits - 1)
    return zeros, levels + scales * zeros


def _best(
    groups: torch.Tensor, format: WeightFormat, shrinks: tuple[float, ...]
) -> QuantizedWeight:
    """The candidates of least squared error, group by group; groups `[O, n, g]`."""
    codes = torch.empty(groups.shape, dtype=torch.uint8)  # parts that are joined take it twice
    scales = torch.empty(*groups.shape[:2], 1)
    zeros = torch.empty(*groups.shape[:2], 1, dtype=torch.uint8)
    for rows in _parts(groups):
        found = _best_of_part(groups[rows].float(), format, shrinks)
        codes[rows], scales[rows], zeros[rows] = found
    kept = None if format.symmetric else zeros.squeeze(2)
    return QuantizedWeight(format, codes.flatten(1), _half(scales.squeeze(2)), kept)


def _best_of_part(
    groups: torch.Tensor, format: WeightFormat, shrinks: tuple[float, ...]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes `[O, n, g]` uint8, scales `[O, n, 1]`, zeros `[O, n, 1]` uint8."""
    best: tuple[torch.Tensor, ...] | None = None
    for scale, zero in _candidates(groups, format, shrinks):
        codes = (groups / scale).round_().add_(zero).clamp_(0, 2**format.bits - 1)
        centred = codes - zero
        power = centred.square().sum(2, keepdim=True).clamp_min(1.0)
        product = (groups * centred).sum(2, keepdim=True)
        # |w - s c|² is |w|² - (w·c)² / |c|² at the fitted scale s = w·c / |c|²: the gain decides.
        new = (product.square() / power, codes, product / power, zero)
        if best is None:
            best = new
        else:
            better = new[0] > best[0]
            best = tuple(torch.where(better, a, b) for a, b in zip(new, best, strict=True))
    assert best is not None
    _, codes, scales, zeros = best
    return codes.byte(), scales, zeros.byte()


def _parts(groups: torch.Tensor) -> list[slice]:
    """Rows that are rounded together, so that trying candidates takes little memory."""
    rows = max(1, _PART * len(groups) // max(1, groups.numel()))
    return [slice(start, start + rows) for start in range(0, len(groups), rows)]


def _candidates(
    groups: torch.Tensor, format: WeightFormat, shrinks: tuple[float, ...]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Scales and zero points `[O, n, 1]` worth trying."""
    top = 2**format.bits - 1
    if format.symmetric:
        # The largest weight, whatever its sign, takes the end of the range that reaches further.
        where = groups.abs().argmax(2, keepdim=True)
        full = -groups.gather(2, where) / 2 ** (format.bits - 1)
        full = torch.where(full == 0, _TINY, full)
        zero = torch.full_like(full, 2.0 ** (format.bits - 1))
        return [(full * shrink, zero) for shrink in shrinks]
    low = groups.amin(2, keepdim=True).clamp_max(0)
    high = groups.amax(2, keepdim=True).clamp_min(0)
    full = ((high - low) / top).clamp_min(_TINY)
    tried = []
    for shrink in shrinks:
        scale = full * shrink
        exact = -low / scale
        tried += [(scale, exact.floor().clamp(0, top)), (scale, exact.ceil().clamp(0, top))]
    return tried


def _half(scales: torch.Tensor) -> torch.Tensor:
    """Rounds scales to half precision, which is how they are stored, unless that loses anything.

    GGUF's own scales are halves. Others change by 2⁻¹¹, far less than the codes' own rounding.
    """
    half = scales.half().float()
    close = (half - scales).abs() <= _HALF_LOSS * scales.abs()
    return half if bool(close.all()) else scales


def _is_half(scales: torch.Tensor) -> bool:
    """Whether they are stored as halves."""
    return bool((scales.half().float() == scales).all())


def _pack(nibbles: torch.Tensor) -> torch.Tensor:
    """Pairs of 4-bit numbers along the last axis into bytes."""
    return (nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)).contiguous()
