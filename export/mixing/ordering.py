"""Puts the channels that lose most in 4 bits first, so that a weight's first inputs can have 8.

Some channels are large, and rounding a weight that reads them costs most of what all cost. An
operator that has one format for a whole weight spends 8 bits on all of it. In this order it is
divided: 8 bits for the first inputs, 4 for the others, each with a scale of its own for what it
reads. The order of channels is free where one layer computes them and others read them: the
residual stream's, one order for all layers, and the MLP's inner ones. The function stays the same,
K and V too.

Letters: O outputs, I inputs, d width.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.backend import Backend
from edgeinfinite.export.mixing.curvature import WeightStatistics
from edgeinfinite.export.mixing.stream import Stream, stream_of
from edgeinfinite.export.recipes import WeightFormat

Statistics = Mapping[str, WeightStatistics]

_INNER = (("mlp.gate_proj", "mlp.up_proj"), "mlp.down_proj")


def order_inputs(
    model: PreTrainedModel, statistics: Statistics, backend: Backend, kept: Collection[str]
) -> int:
    """Orders the channels of a model and of its statistics, in place.

    Args:
        model: float32; layers built otherwise than Llama's are left alone.
        statistics: of its weights.
        backend: which rounds them.
        kept: weights that mustn't change, because their integers are taken over; with any, nothing
            is ordered.

    Returns:
        How many times channels were ordered.
    """
    stream = stream_of(model)
    if stream is None or kept:
        return 0
    names = _names(model)
    ordered = 0
    with torch.no_grad():
        for layer in model.get_decoder().layers:
            ordered += _order_inner(layer, statistics, names, backend)
        ordered += _order_stream(stream, statistics, names, backend)
    return ordered


def can_be_ordered(model: PreTrainedModel, kept: Collection[str]) -> bool:
    """Whether `order_inputs` would order the channels of the residual stream."""
    return not kept and stream_of(model) is not None


def _names(model: PreTrainedModel) -> dict[int, str]:
    """Of weights, by identity; a table that the LM head shares has the embedding's."""
    return {id(parameter): name for name, parameter in model.named_parameters()}


def _gain(linear: Any, statistics: WeightStatistics, backend: Backend) -> torch.Tensor:
    """What 8 bits for an input spare of the loss that 4 bits cost, `[I]`; they sum up to all."""
    assert statistics.inputs is not None and statistics.outputs is not None
    weight = linear.weight.detach().float()
    spared = torch.zeros(weight.shape[1])
    for bits, sign in ((4, 1.0), (8, -1.0)):
        error = backend.rounded(weight, WeightFormat(bits), embedding=False)[0] - weight
        by_output = error * statistics.outputs.unsqueeze(1)
        spared += sign * 0.5 * (by_output * (error @ statistics.inputs)).sum(0)
    return spared


def _known(
    linear: Any, statistics: Statistics, names: Mapping[int, str]
) -> WeightStatistics | None:
    """Statistics that tell what a channel costs; None where there are none."""
    found = statistics.get(names[id(linear.weight)])
    if found is None or found.inputs is None or found.outputs is None:
        return None
    return found


def _order_inner(
    layer: Any, statistics: Statistics, names: Mapping[int, str], backend: Backend
) -> int:
    modules: dict[str, Any] = dict(layer.named_modules())
    if not {*_INNER[0], _INNER[1]} <= set(modules):  # fused
        return 0
    sources, reader = [modules[name] for name in _INNER[0]], modules[_INNER[1]]
    found = _known(reader, statistics, names)
    if found is None:
        return 0
    order = _gain(reader, found, backend).argsort(descending=True)
    _order_columns(reader.weight, order)
    _order_inputs(found, order)
    for source in sources:
        _order_rows(source, statistics[names[id(source.weight)]], order)
    return 1


def _order_stream(
    stream: Stream, statistics: Statistics, names: Mapping[int, str], backend: Backend
) -> int:
    readers = [linear for layer in stream.readers for _, linears in layer for linear in linears]
    found = [_known(linear, statistics, names) for linear in readers]
    gains = [
        _gain(linear, known, backend)
        for linear, known in zip(readers, found, strict=True)
        if known is not None
    ]
    if not gains:
        return 0
    order = torch.stack(gains).sum(0).argsort(descending=True)
    norms = [norm for layer in stream.readers for norm, _ in layer]
    for norm in (*norms, stream.last_norm):
        norm.weight.copy_(norm.weight[order])
    tables = {id(module.weight): module for module in (stream.embedding, stream.head)}
    for linear in (*readers, *tables.values()):
        _order_columns(linear.weight, order)
    seen: set[int] = set()
    for linear in (*readers, *tables.values()):
        _order_inputs(statistics.get(names[id(linear.weight)]), order, seen)
    for writers in stream.writers:
        for linear in writers:
            _order_rows(linear, statistics.get(names[id(linear.weight)]), order)
    return 1


def _order_columns(weight: torch.Tensor, order: torch.Tensor) -> None:
    weight.copy_(weight[:, order])


def _order_rows(linear: Any, statistics: WeightStatistics | None, order: torch.Tensor) -> None:
    linear.weight.copy_(linear.weight[order])
    if linear.bias is not None:
        linear.bias.copy_(linear.bias[order])
    if statistics is not None and statistics.outputs is not None:
        statistics.outputs = statistics.outputs[order]


def _order_inputs(
    statistics: WeightStatistics | None, order: torch.Tensor, seen: set[int] | None = None
) -> None:
    """Those that layers share are one tensor, and are ordered once."""
    if statistics is None:
        return
    inputs, seen = statistics.inputs, set() if seen is None else seen
    if inputs is not None and id(inputs) not in seen:
        inputs.copy_(inputs[order][:, order])
        seen.add(id(inputs))
    if statistics.gradients is not None:
        statistics.gradients = statistics.gradients[:, order]
