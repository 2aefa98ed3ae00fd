"""Replaces RoPE's eleven operators by one node, RotaryEmbedding.

transformers' modelling code calls a function of its own module, `apply_rotary_pos_emb`, with Q and
K or (Gemma 3n and 4) with one of them. While the graph is traced, the fused function replaces it,
if both compute the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.onnx import operators
from edgeinfinite.export.onnx.rows import packed, unpacked
from edgeinfinite.models.attach import attention_layers
from edgeinfinite.models.recall.rotary import Layout, RotaryTable
from edgeinfinite.models.rotary_embedding import rotary_embedding

_NAME = "apply_rotary_pos_emb"
_HEADS_LAST = 2
"""`unsqueeze_dim` of rows of heads, `[1, T, H, D]`."""


@dataclass(frozen=True)
class _Form:
    """A way to turn queries and keys that the operator has.

    Args:
        interleaved: whether neighbouring dimensions turn into each other, not halves.
        backwards: whether they turn the other way than the operator.
        side_by_side: whether the columns of cos and sin hold each angle twice in a row, not the
            angles twice over.
        single: whether they hold each angle once.
    """

    interleaved: bool = False
    backwards: bool = False
    side_by_side: bool = False
    single: bool = False

    def fused(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        *_: Any,
        **__: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """q `[1, H, T, D]`, k `[1, K, T, D]`; cos and sin `[1, T, R]`."""
        return self._one(q, cos, sin), self._one(k, cos, sin)

    def fused_of_rows(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
    ) -> torch.Tensor:
        """x `[1, T, H, D]` by itself, `unsqueeze_dim` 2; or 1 and `[1, H, T, D]`."""
        if unsqueeze_dim != _HEADS_LAST:
            return self._one(x, cos, sin)
        return self._turned(x.flatten(2), cos, sin, x.shape[2]).unflatten(2, (x.shape[2], -1))

    def _one(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return unpacked(self._turned(packed(x), cos, sin, x.shape[1]), x.shape[1])

    def _turned(
        self, rows: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, heads: int
    ) -> torch.Tensor:
        """Rows `[1, T, H D]`."""
        columns = cos.shape[-1]
        once = slice(0, columns, 2) if self.side_by_side else slice(columns // 2)
        once = slice(columns) if self.single else once
        start = torch.zeros(1, dtype=torch.int64)
        return operators.rotary(
            rows,
            start,
            cos[0, :, once],
            -sin[0, :, once] if self.backwards else sin[0, :, once],
            heads=heads,
            interleaved=self.interleaved,
        )

    def replacing(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """What computes the same as a model's function with the operator; None if nothing does."""
        generator = torch.Generator().manual_seed(0)

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator)

        q, k, angle = random(1, 4, 3, 8), random(1, 2, 3, 8), random(1, 3, 4)
        twice = angle.repeat_interleave(2, dim=-1) if self.side_by_side else angle.repeat(1, 1, 2)
        given = angle if self.single else twice
        angles = given.cos(), given.sin()
        wanted = [self._reference(x, angle.unsqueeze(1)) for x in (q, k)]
        rows = q.transpose(1, 2)
        known: tuple[tuple[Callable[..., Any], Callable[[], Any]], ...] = (
            (self.fused, lambda: function(q, k, *angles)),
            (
                self.fused_of_rows,
                lambda: (function(rows, *angles, unsqueeze_dim=_HEADS_LAST).transpose(1, 2),),
            ),
        )
        for replacement, computed in known:
            try:
                results = computed()
            except (TypeError, RuntimeError):  # another signature, perhaps another kind of RoPE
                continue
            if all(map(partial(torch.allclose, atol=1e-5), results, wanted)):
                return replacement
        return None

    def _reference(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        layout = Layout(interleaved=self.interleaved)
        first, second = (x[..., part] for part in layout.of(angle.shape[-1]))
        cos, sin = angle.cos(), -angle.sin() if self.backwards else angle.sin()
        turned = layout.joined(first * cos - second * sin, second * cos + first * sin)
        return torch.cat(turned, dim=-1)


_FORMS = [
    _Form(interleaved, backwards, side_by_side)
    for side_by_side in (False, True)
    for interleaved in (False, True)
    for backwards in (False, True)
] + [_Form(single=True)]


@contextmanager
def fused_rotary(model: PreTrainedModel) -> Iterator[bool]:
    """Inside, the model's attention rotates Q and K with the fused operator.

    Yields:
        Whether it does; False if the operator doesn't have the model's way to rotate.
    """
    layer = attention_layers(model)[0]
    module: Any = sys.modules[type(layer).__module__]
    original = getattr(module, _NAME, None)
    replacing = (form.replacing(original) for form in _FORMS if original)
    fused = next((found for found in replacing if found), None)
    if fused is None:
        yield False
        return
    setattr(module, _NAME, fused)
    try:
        yield True
    finally:
        setattr(module, _NAME, original)


def one_grid(model: PreTrainedModel) -> bool:
    """Leaves out what tells the positions of an image's rows and columns apart: text has one.

    Args:
        model: a copy, whose rotary embedding is changed.

    Returns:
        Whether its embedding has this; the others stay as they are.
    """
    embedding: Any = rotary_embedding(model.get_decoder())
    mixes = getattr(embedding, "recomposition_frequencies", None)
    if mixes is None:
        return False

    def first(parts: torch.Tensor) -> torch.Tensor:
        return torch.cat((parts[0], parts[0]), dim=-1)

    count = embedding.inv_freq.shape[0]
    same = torch.rand(1, 1, 3, count, generator=torch.Generator().manual_seed(0)).expand(
        3, 1, 3, -1
    )
    if not torch.equal(mixes(same.clone()), first(same)):
        return False
    embedding.recomposition_frequencies = first
    return True


class FusedRotaryTable(RotaryTable):
    """Rotates keys with the fused operator, for tracing; same equations as the parent."""

    def _turned_back(self, key: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """See `RotaryTable.shift_back`; key `[1, K, n, D]`, slots `[n]` or `[1, K, n]`."""
        assert self.cos is not None and self.sin is not None
        start = self.layout.start
        before, key = (key[..., :start], key[..., start:]) if start else (key, key)
        # If each head has its own distances, the heads go on the operator's batch axis.
        apart = slots.dim() > 1
        x, rows = (key.transpose(0, 1), slots[0]) if apart else (key, slots.unsqueeze(0))
        turned = operators.rotary(
            x.float(),
            rows,
            self.cos,
            -self.sin,  # the inverse rotation: sin(-x) = -sin(x)
            heads=x.shape[1],
            interleaved=self.layout.interleaved,
        ).to(key.dtype)
        turned = turned.transpose(0, 1) if apart else turned
        return torch.cat((before, turned), dim=-1) if start else turned
