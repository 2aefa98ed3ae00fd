"""Training gates through sessions of policy `carry`, segment by segment.

The cache is updated as by the reference engine (`models.recall.carry`), without a gradient. Inside
a segment the gradient flows through the network to the gates, and through M and z to the feature
maps of all folded pairs. Letters: L layers, K KV heads, S sinks, N segment, W window, T tokens, D
head dimension.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import (
    attention_layers,
    config_of,
    feature_maps,
    rank_rule_of,
    scored_layers,
)
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import causal_attention
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.memory.compressive import compress
from edgeinfinite.models.recall.carry import carry_caches
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.state import TensorState, fold_oldest
from edgeinfinite.training.gate.loss import Teacher, loss_of
from edgeinfinite.training.gate.segments import Pass
from edgeinfinite.training.gate.steps import GateSteps


class CarriedState(TensorState):
    """The reference state of a text under `carry`, with gradients inside the current segment.

    Args:
        model: attached under `carry`.
        reads: `own`, or `zero`: the memory reads zeros, the control.
    """

    def __init__(self, model: PreTrainedModel, *, reads: str = "own") -> None:
        facts, layers = architecture_of(model), attention_layers(model)
        self._geometry: Geometry = config_of(model).geometry
        self._reads, self._maps = reads, feature_maps(model)
        self._rule = rank_rule_of(model)
        self._scorers = [layer.retention_scorer for layer in layers]
        self._tables = rotary_tables(model, self._geometry.capacity)
        self._folded: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[] for _ in layers]
        heads, dim, scored = facts.kv_heads, facts.head_dim, scored_layers(model)
        shapes = [(1, heads, slots, dim) for slots in self._geometry.capacities(len(layers))]
        super().__init__(
            length=torch.zeros(len(layers), dtype=torch.int64),
            k_cache=[torch.zeros(shape) for shape in shapes],
            v_cache=[torch.zeros(shape) for shape in shapes],
            memory=torch.zeros(len(layers), heads, dim, dim),
            memory_norm=torch.zeros(len(layers), heads, dim),
            has_memory=torch.zeros(1),
            scores=[
                torch.zeros(1, heads, scored[layer]) if layer in scored else None
                for layer in range(len(layers))
            ],
            longest_layer=self._geometry.longest_layer,
        )

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`; the cache gets no gradient, the new tokens do."""
        layer, pairs = call.layer, []
        start = int(self.length[layer])
        for cache, new in ((self.k_cache[layer], call.key), (self.v_cache[layer], call.value)):
            before = cache[:, :, :start].to(call.query.dtype)
            pairs.append(torch.cat((before, new), 2))
            cache[:, :, start : start + new.shape[2]] = new.detach()
        return causal_attention(call, *pairs)

    def compress(self) -> None:
        """One compression: M and z keep their gradient if there is one; the cache has none."""
        geometry, length = self._geometry, self.length
        if self._reads == "own":
            end = (length - geometry.window_length).tolist()
            for layer, folded in enumerate(self._folded):
                rows = slice(end[layer] - geometry.segment_length, end[layer])
                caches = self.k_cache[layer], self.v_cache[layer]
                folded.append((caches[0][0, :, rows].clone(), caches[1][0, :, rows].clone()))
            self.memory, self.memory_norm = fold_oldest(
                geometry,
                self.k_cache,
                self.v_cache,
                self.memory,
                self.memory_norm,
                length,
                feature_maps=self._maps,
            )
        with torch.no_grad():
            self.length = carry_caches(
                geometry,
                self._rule,
                length,
                self.k_cache,
                self.v_cache,
                self._tables,
                self._scorers,
                self.scores,
            )
        self.has_memory = torch.ones_like(self.has_memory)

    def fold_again(self) -> None:
        """Computes M and z of all folded pairs again, with the current feature maps."""
        if self._reads != "own":
            return
        again = []
        for layer, (folded, feature_map) in enumerate(zip(self._folded, self._maps, strict=True)):
            key, value = (torch.cat(parts, 1) for parts in zip(*folded, strict=True))
            empty = torch.zeros_like(self.memory[layer]), torch.zeros_like(self.memory_norm[layer])
            again.append(compress(key, value, *empty, feature_map))
        self.memory, self.memory_norm = (torch.stack(parts) for parts in zip(*again, strict=True))


@dataclass(frozen=True)
class Course:
    """Which segments of a text are trained on.

    Args:
        together: number of consecutive segments that share a step and M's gradient.
        every: one group in `every` is trained on; the others only update the state, which is
            faster.
    """

    together: int = 4
    every: int = 2

    def steps(self, geometry: Geometry, tokens: int, number: int) -> int:
        """Steps that a text gives.

        Args:
            geometry: S, N, W.
            tokens: of the text.
            number: of the text; it decides which groups are learnt from.
        """
        segments = len(_starts(geometry, tokens))
        groups = -(-segments // self.together)
        return len(range(number % self.every, groups, self.every))


def _starts(geometry: Geometry, tokens: int) -> range:
    """Starts of the segments that read a memory and whose every token has a next token."""
    step = geometry.segment_length
    return range(geometry.sink_length + geometry.window_length + step, tokens - step, step)


@dataclass(frozen=True)
class CarriedPass(Pass):
    """One trained segment.

    Args:
        ends_gradient: the gradient is cut after this pass, so run backward now.
    """

    ends_gradient: bool


def read_carried(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    state: CarriedState,
    course: Course,
    number: int = 0,
) -> Iterator[CarriedPass]:
    """Yields the trained segments of a text, each read like in a session under `carry`.

    Args:
        model: attached under `carry`.
        tokens: `[n]` int64.
        state: fresh.
        course: which segments.
        number: of the text; it decides which groups are learnt from.
    """
    geometry = config_of(model).geometry
    step, starts = geometry.segment_length, _starts(geometry, len(tokens))
    with torch.no_grad():
        run_tokens(model, tokens[None, : starts.start], state)
        state.length = state.length + starts.start
        state.compress()
    for index, start in enumerate(starts):
        group, place = divmod(index, course.together)
        learns = group % course.every == number % course.every
        ends = place == course.together - 1 or index == len(starts) - 1
        with torch.set_grad_enabled(learns):
            if place == 0:
                state.fold_again()
            part = tokens[None, start : start + step]
            logits = run_tokens(model, part, state, logits_to_keep=step if learns else 1)
        state.length = state.length + step
        if learns:
            yield CarriedPass(slice(start + 1, start + step + 1), logits[0], ends)
        with torch.set_grad_enabled(learns and not ends):
            state.compress()


def train_through_sessions(
    model: PreTrainedModel,
    stretches: Sequence[torch.Tensor],
    teachers: Sequence[Teacher | None],
    course: Course,
    *,
    reads: str,
    rates: tuple[float, float],
    progress: Callable[[str, float], None],
) -> list[dict[str, Any]]:
    """Trains the gates in place; every stretch is its own session, read once.

    Args:
        model: attached under `carry`, with the gates to begin from.
        stretches: of tokens, `[T]` int64 each.
        teachers: of the stretches; None for cross-entropy.
        course: which segments are learnt from.
        reads: `own`, or `zero` for the control.
        rates: see `GateSteps`.
        progress: called with the name of the current stage and the share that is done.

    Returns:
        A row for every step, see `GateSteps.step`.

    Raises:
        EdgeInfiniteError: the loss isn't finite.
    """
    geometry: Geometry = config_of(model).geometry
    planned = sum(course.steps(geometry, len(t), number) for number, t in enumerate(stretches))
    steps = GateSteps([layer.memory_gate for layer in attention_layers(model)], rates, planned)
    rows: list[dict[str, Any]] = []
    tokens_done, began = 0, time.monotonic()
    for number, (tokens, teacher) in enumerate(zip(stretches, teachers, strict=True)):
        losses: list[torch.Tensor] = []
        state = CarriedState(model, reads=reads)
        for part in read_carried(model, tokens, state, course, number):
            losses.append(loss_of(part.logits, part.places, tokens, teacher))
            tokens_done += len(part.logits)
            if part.ends_gradient:
                row = steps.step(losses) | {"tokens": tokens_done, "sample": number}
                losses = []
                rows.append(row)
                speed = tokens_done / (time.monotonic() - began)
                progress(f"loss {row['loss']:.4f}, {speed:.0f} tokens/s", steps.share_done)
    return rows
