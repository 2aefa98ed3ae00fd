"""Fitting the gates layer by layer to full attention, before end-to-end training.

One pass of the frozen backbone with full attention over a stretch records every layer's queries,
keys and values, and how full attention differs from attention to sinks and segment alone. Each
layer's gate and feature map are then fitted to that difference; no gradient flows through the
backbone. This is attention transfer (Hedgehog, arXiv 2402.04347; LoLCATs, 2410.10254). A step costs
milliseconds; one through the network costs seconds.

Letters: H query heads, K KV heads, S sinks, N segment, n queries sampled, i segments that read a
memory, D head dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attention_layers
from edgeinfinite.models.attention.adapter import register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import causal_attention
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.memory.compressive import retrieve
from edgeinfinite.models.memory.gate import MemoryGate, log_positions
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.training.gate.lengths import Lengths

_TRANSFER_ATTENTION = "edgeinfinite-transfer"
_SEEN_ARGUMENT = "edgeinfinite_seen"
_QUERIES = 320
"""Queries sampled per stretch, evenly spaced; the offset differs by stretch."""

_LEARNING_RATE = 3e-3
_QUERY_OPENING_RATE = 1e-2
_OPENING_RATE = 5e-2
_PLACE_OPENING_RATE = 0.3
_LEAST_RATE = 0.02
_WARM_UP = 10
_LARGEST_NORM = 1.0


@dataclass(frozen=True)
class Seen:
    """One layer's tensors for one stretch, at the slots of a session; half precision.

    Args:
        query: `[H, i n, D]` after RoPE.
        local: A_dot of these queries, `[H, i n, D]`.
        missed: full attention minus A_dot, `[H, i n, D]`.
        key, value: `[K, i, N, D]` of the segments folded before.
        log_position: p of these queries (`gate.log_positions`), `[i n]`; only the opening `place`
            needs it.
    """

    query: torch.Tensor
    local: torch.Tensor
    missed: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    log_position: torch.Tensor | None = None


@dataclass(frozen=True)
class _Watch:
    lengths: Lengths
    segments: int
    rows: torch.Tensor
    tables: list[RotaryTable]
    seen: list[Seen]


def look_at(
    model: PreTrainedModel, tokens: torch.Tensor, lengths: Lengths, number: int
) -> list[Seen]:
    """Reads a stretch with full attention and returns what every layer saw.

    Args:
        model: a backbone, attached or not.
        tokens: `[T]` int64, T = `lengths.tokens(segments)`, no more than its trained positions.
        lengths: how a session cuts the text.
        number: the stretch's number; it decides which queries are sampled.

    Raises:
        EdgeInfiniteError: norms after RoPE have weights.
    """
    segments = (len(tokens) - lengths.tokens(0)) // lengths.segment
    stride = max(1, segments * lengths.segment // _QUERIES)
    rows = torch.arange(number % stride, lengths.segment, stride)
    end = lengths.sinks + (segments + 1) * lengths.segment
    tables = rotary_tables(model, end)
    if any(table.gain is not None for table in tables):
        raise EdgeInfiniteError(
            f"{type(model).__name__} has norms of queries and keys after RoPE, so a gate can't be "
            "trained for it: queries move by other weights than keys; export with --gate none"
        )
    watch = _Watch(lengths, segments, rows, tables, [])
    with torch.no_grad(), attention_implementation(model, _TRANSFER_ATTENTION):
        model(
            input_ids=tokens[None, :end],
            use_cache=False,
            logits_to_keep=1,
            **{_SEEN_ARGUMENT: watch},
        )
    return watch.seen


def _attend(call: AttentionCall, _: nn.Module, others: dict[str, Any]) -> torch.Tensor:
    watch: _Watch = others[_SEEN_ARGUMENT]
    plain = call.softcap is None and call.sinks is None
    if plain and call.sliding_window is None:  # avoids a T x T mask
        full = functional.scaled_dot_product_attention(
            call.query, call.key, call.value, is_causal=True, scale=call.scaling, enable_gqa=True
        )
    else:
        full = causal_attention(call, call.key, call.value)
    watch.seen.append(_seen(watch, call, full))
    return full


register_attention(_TRANSFER_ATTENTION, _attend)


def _seen(watch: _Watch, call: AttentionCall, full: torch.Tensor) -> Seen:
    query, key, value = call.query, call.key, call.value
    sinks, length, table = watch.lengths.sinks, watch.lengths.segment, watch.tables[call.layer]
    places = (sinks + watch.rows).to(query.device)
    keys, queries, locals_, wanted = [], [], [], []
    for index in range(watch.segments + 1):
        part = slice(sinks + index * length, sinks + (index + 1) * length)
        moved = torch.tensor(index * length, device=query.device)  # every segment starts at slot S
        keys.append(table.shift_back(key[:, :, part], moved))
        if index == 0:  # it reads no memory
            continue
        rows = part.start + watch.rows.to(query.device)
        queries.append(table.shift_back(query[:, :, rows], moved))
        near = torch.cat((key[:, :, :sinks], keys[-1]), 2)
        values = torch.cat((value[:, :, :sinks], value[:, :, part]), 2)
        moved_call = replace(call, query=queries[-1])
        locals_.append(causal_attention(moved_call, near, values, places))
        wanted.append(full[:, :, rows])
    local = torch.cat(locals_, 2)[0].float()
    folded = slice(sinks, sinks + watch.segments * length)
    stored = (
        torch.cat(queries, 2)[0],
        local,
        torch.cat(wanted, 2)[0].float() - local,
        torch.stack(keys[:-1], 2)[0],
        value[0, :, folded].unflatten(1, (watch.segments, length)),
        log_positions(places).repeat(watch.segments),
    )
    return Seen(*(tensor.half().cpu() for tensor in stored))


def fit_layer(
    gate: MemoryGate,
    seen: Sequence[Seen],
    output: torch.Tensor | None,
    *,
    reads: str,
    epochs: int,
    seed: int,
    rate: float = 1.0,
) -> float:
    """Fits the gate and the feature map of one layer.

    Args:
        gate: changed in place.
        seen: this layer's `Seen` of several stretches.
        output: weight of the output projection, `[hidden, H D]`; the error is measured after it, or
            before it if None.
        reads: `own`, or `zero`: the memory reads zero, the control.
        epochs: how many times each stretch is used.
        seed: decides the order.
        rate: factor on the learning rates.

    Returns:
        The share of local attention's squared error that the gate explains in the last epoch.
    """
    rates = {"g": _OPENING_RATE, "u": _QUERY_OPENING_RATE, "c": _PLACE_OPENING_RATE}
    groups = [
        {"params": [parameter], "peak": rates.get(name, _LEARNING_RATE)}
        for name, parameter in gate.named_parameters()
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99), weight_decay=0.0)
    device, steps = gate.g.device, epochs * len(seen)
    random = torch.Generator().manual_seed(seed)
    size = sum(float(_size(one.missed.to(device).float(), output)) for one in seen) / len(seen)
    left = 0.0
    for step in range(steps):
        place = step % len(seen)
        if place == 0:
            order, left = torch.randperm(len(seen), generator=random).tolist(), 0.0
        cosine = (1 + math.cos(math.pi * step / steps)) / 2
        factor = min(1.0, (step + 1) / _WARM_UP) * (_LEAST_RATE + (1 - _LEAST_RATE) * cosine)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor * rate
        one = seen[order[place]]
        found = corrections(gate, one, one if reads == "own" else None)
        loss = _size(found - one.missed.to(device).float(), output) / max(size, 1e-30)
        loss.backward()
        nn.utils.clip_grad_norm_(gate.parameters(), _LARGEST_NORM)
        optimizer.step()
        optimizer.zero_grad()
        left += float(loss.detach()) / len(seen)
    return 1.0 - left


def corrections(gate: MemoryGate, one: Seen, memory: Seen | None) -> torch.Tensor:
    """A_com - A_dot, `[H, i n, D]` float32.

    Args:
        gate: the layer's.
        one: its queries read the memory.
        memory: its segments are in that memory; None reads zeros.
    """
    device = gate.g.device
    query, local = (x.to(device).float() for x in (one.query, one.local))
    found = torch.zeros_like(local)
    if memory is not None:
        key, value = (x.to(device).float() for x in (memory.key, memory.value))
        features = gate.feature_map(key.transpose(0, 1)).transpose(0, 1)
        ones = torch.ones(*value.shape[:-1], 1, device=device)
        # Segment i reads the sum over the segments before it: M and z of all reads at once.
        sums = (features.transpose(-1, -2) @ torch.cat((value, ones), -1)).cumsum(1)
        parts = [
            retrieve(part[None], sums[:, i, :, :-1], sums[:, i, :, -1], gate.feature_map)[0]
            for i, part in enumerate(query.chunk(key.shape[1], 1))
        ]
        found = torch.cat(parts, 1)
    opened = torch.ones(1, device=device)
    log_position = None if one.log_position is None else one.log_position.to(device).float()
    return gate.blend(query[None], found[None], local[None], opened, log_position)[0] - local


def _size(x: torch.Tensor, output: torch.Tensor | None) -> torch.Tensor:
    """Squared norm of `[H, n, D]`, after the output projection if there is one."""
    rows = x.transpose(0, 1).flatten(1)
    return (rows if output is None else rows @ output.T).square().sum()


def transfer(
    model: PreTrainedModel,
    stretches: Sequence[torch.Tensor],
    lengths: Lengths,
    *,
    reads: str,
    epochs: int,
    seed: int,
    progress: Callable[[str, float], None],
) -> list[float]:
    """Fits the gates of all layers; the backbone isn't changed.

    All stretches are kept in RAM: 0.15 GB for 4,673 tokens with SmolLM2-135M.

    Args:
        model: attached, with the gates to fit.
        stretches: token ids, `[T]` int64 each.
        lengths: how a session cuts them.
        reads: `own` or `zero`.
        epochs: see `fit_layer`.
        seed: of the order of the stretches.
        progress: called with the name of the current stage and the share that is done.

    Returns:
        The result of `fit_layer` for every layer.
    """
    passes = []
    for number, tokens in enumerate(stretches):
        progress("reading with full attention", number / len(stretches))
        passes.append(look_at(model, tokens, lengths, number))
    explained = []
    layers = attention_layers(model)
    for index, layer in enumerate(layers):
        progress("fitting layer by layer", index / len(layers))
        projection = getattr(layer, "o_proj", None)
        output = None if projection is None else projection.weight.float()
        seen = [layers_of_one[index] for layers_of_one in passes]
        explained.append(
            fit_layer(layer.memory_gate, seen, output, reads=reads, epochs=epochs, seed=seed)
        )
    return explained
