"""Reading a text as Algorithm 1 does, segment by segment, with gradients for the gate.

A pass reads the sinks, one segment and the memory of all earlier segments. Then the segment is
folded into the memory. Letters: B batch (1), L layers, H query heads, K KV heads, T tokens of a
pass, S sinks, N segment, D head dimension, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import feature_maps
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import causal_attention
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.memory.compressive import compress
from edgeinfinite.training.gate.lengths import Lengths

MEMORIES = ("own", "zero", "off")
"""What the gate reads: the memory, zeros in its place (the control), or nothing (no gate at
all)."""

Memory = tuple[list[torch.Tensor], list[torch.Tensor]]
"""M `[K, D, D]` and z `[K, D]` of every layer, float32."""


class SegmentState:
    """Sinks, memory and the current pass: an `AttentionState` that autograd can follow.

    Args:
        model: attached.
        lengths: how the text is cut.
        reads: one of `MEMORIES`.
        replaced: memories of another text, one per pass, to read in place of this text's.
        trains_keys: a learned feature map gets gradients from all folded keys, even where no
            gradient flows through earlier passes; K and V are kept for that.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        lengths: Lengths,
        *,
        reads: str = "own",
        replaced: Sequence[Memory] | None = None,
        trains_keys: bool = False,
    ) -> None:
        facts, device = architecture_of(model), model.device
        self._lengths, self._reads, self._replaced = lengths, reads, replaced
        self._folded = 0
        self._maps = feature_maps(model)
        self._keeps = trains_keys and self._maps[0].name == "learned"
        self._kept: list[list[tuple[torch.Tensor, torch.Tensor]]] = []
        layers, heads, dim = len(facts.layers), facts.kv_heads, facts.head_dim
        self.memory = [torch.zeros(heads, dim, dim, device=device) for _ in range(layers)]
        self.memory_norm = [torch.zeros(heads, dim, device=device) for _ in range(layers)]
        self.has_memory = torch.zeros(1, device=device)
        self._sinks: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._pass: list[tuple[torch.Tensor, torch.Tensor]] = []

    def positions(self, tokens: int) -> torch.Tensor:
        """See `AttentionState.positions`."""
        start = self._lengths.sinks if self._sinks else 0
        return torch.arange(start, start + tokens, device=self.has_memory.device).unsqueeze(0)

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionState.memory_of`."""
        memories, norms = self.memory, self.memory_norm
        if self._replaced:
            memories, norms = self._replaced[min(self._folded, len(self._replaced)) - 1]
        if self._reads == "zero":
            return memories[layer] * 0.0, norms[layer] * 0.0
        return memories[layer], norms[layer]

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        key, value = call.key, call.value
        self._pass.append((key, value))
        if self._sinks:
            before = self._sinks[call.layer]
            key, value = torch.cat((before[0], key), 2), torch.cat((before[1], value), 2)
        return causal_attention(call, key, value)

    def begin_pass(self) -> None:
        """Before every forward pass."""
        self._pass = []

    def keep_sinks(self) -> None:
        """After the first pass, which read the sinks too: splits them off."""
        sinks = self._lengths.sinks
        self._sinks = [(k[:, :, :sinks].detach(), v[:, :, :sinks].detach()) for k, v in self._pass]
        self._pass = [(k[:, :, sinks:], v[:, :, sinks:]) for k, v in self._pass]

    def fold(self) -> None:
        """Folds the pass's segment into the memory (Eq. 5, 6), with any gradient that it has."""
        rows = slice(0, self._lengths.segment)
        segment = [(key[0, :, rows], value[0, :, rows]) for key, value in self._pass]
        for layer, (key, value) in enumerate(segment):
            self.memory[layer], self.memory_norm[layer] = compress(
                key, value, self.memory[layer], self.memory_norm[layer], self._maps[layer]
            )
        if self._keeps:
            self._kept.append([(key.detach(), value.detach()) for key, value in segment])
        self._pass = []
        self._folded += 1
        if self._reads != "off":
            self.has_memory = torch.ones_like(self.has_memory)

    def detach(self) -> None:
        """Cuts the gradient of everything folded so far, except the feature map's own."""
        self.memory = [memory.detach() for memory in self.memory]
        self.memory_norm = [norm.detach() for norm in self.memory_norm]
        if not self._keeps:
            return
        for layer, feature_map in enumerate(self._maps):
            pairs = zip(*(segment[layer] for segment in self._kept), strict=True)
            key, value = (torch.cat(parts, 1) for parts in pairs)
            empty = torch.zeros_like(self.memory[layer]), torch.zeros_like(self.memory_norm[layer])
            self.memory[layer], self.memory_norm[layer] = compress(key, value, *empty, feature_map)


@dataclass(frozen=True)
class Pass:
    """One pass that read a memory.

    Args:
        places: where the predicted tokens stand in the text.
        logits: `[N, V]`, one row for each of them.
    """

    places: slice
    logits: torch.Tensor


def read_segments(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    state: SegmentState,
    lengths: Lengths,
) -> Iterator[Pass]:
    """Reads a text pass by pass; before each, the previous segment is folded into the memory.

    The first pass (sinks and first segment) reads no memory and doesn't use the gate, so it runs
    without gradients and isn't yielded.

    Args:
        model: attached.
        tokens: `[n]` int64, n = `lengths.tokens(segments)`.
        state: a new one.
        lengths: how to cut the text.
    """
    end = lengths.sinks + lengths.segment
    with torch.no_grad():
        state.begin_pass()
        run_tokens(model, tokens[None, :end], state)
        state.keep_sinks()
        state.fold()
    state.detach()
    step = lengths.segment
    for start in range(end, len(tokens) - step, step):
        last = start + step
        state.begin_pass()
        logits = run_tokens(model, tokens[None, start:last], state, logits_to_keep=step)
        yield Pass(slice(last - step + 1, last + 1), logits[0])
        state.fold()
        state.detach()
