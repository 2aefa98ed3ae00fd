"""Inputs that carry much get finer steps, at no cost while running (AWQ).

Lin et al. 2023, arXiv 2306.00978: an input channel that is large makes the rounding of its weights
count. Its weights are multiplied by a factor, which makes their steps finer relative to them, and
what computes the channel is divided by it: a norm's weight, or the rows of `up_proj`. The function
stays the same. The factor is the square root of the channel's root mean square.

Letters: O outputs, I inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from transformers import PreTrainedModel

from edgeinfinite.export.mixing.curvature import WeightStatistics
from edgeinfinite.export.mixing.readers import Pair, read_alone

_POWER = 0.5
"""Of the root mean square. On the permuted SmolLM2 0.25 to 0.75 are alike, 0 costs 200 times as
much in the MLP whose channels have the largest outliers."""

_QUERY_KEY_VALUE = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
_GATE_UP = ("mlp.gate_proj", "mlp.up_proj")
_UP, _DOWN = "mlp.up_proj", "mlp.down_proj"


def scale_inputs(
    model: PreTrainedModel, statistics: Mapping[str, WeightStatistics], kept: Collection[str]
) -> int:
    """Scales the channels of a model and its statistics, in place.

    Args:
        model: float32; layers built otherwise than Llama's or Gemma's are left alone, and channels
            that something else reads, too (Cohere's MLP, Falcon-H1's SSM).
        statistics: of its weights.
        kept: weights that mustn't change, because their integers are taken over.

    Returns:
        How many times channels were scaled.
    """
    names = {id(module): name for name, module in model.named_modules()}
    scaled = 0
    with torch.no_grad():
        for source, linears in read_alone(model, _pairs_of(model)):
            involved = [f"{names[id(m)]}.weight" for m in (*linears, source)]
            measured = [statistics.get(name) for name in involved[: len(linears)]]
            if set(involved) & set(kept) or any(s is None for s in measured):
                continue
            factor = _factor(measured[0])
            if factor is not None:
                _apply(source, statistics.get(involved[-1]), factor)
                _multiply(linears, measured, factor)
                scaled += 1
    return scaled


def _pairs_of(model: PreTrainedModel) -> list[Pair]:
    """Of all layers, those whose channels can be scaled at their source."""
    found = [
        (source, [layer.get_submodule(target) for target in targets])
        for layer in model.get_decoder().layers
        for source, targets in _pairs(layer)
    ]
    return [pair for pair in found if pair[0].weight.dim() == 2 or norm_shift(pair[0]) is not None]


def _pairs(layer: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """What computes channels, and linear layers that read them."""
    before_mlp = "pre_feedforward_layernorm" if hasattr(layer, "pre_feedforward_layernorm") else ""
    before_mlp = before_mlp or "post_attention_layernorm"
    for norm, targets in (("input_layernorm", _QUERY_KEY_VALUE), (before_mlp, _GATE_UP)):
        if _has(layer, (norm, *targets)):
            yield layer.get_submodule(norm), targets
    if _has(layer, (_UP, _DOWN)):
        yield layer.get_submodule(_UP), (_DOWN,)


def _has(layer: Any, names: tuple[str, ...]) -> bool:
    """Whether all are there, with weights and without biases."""
    known = dict(layer.named_modules())
    found = [known.get(name) for name in names]
    return all(
        getattr(m, "weight", None) is not None and getattr(m, "bias", None) is None for m in found
    )


def _factor(statistics: WeightStatistics | None) -> torch.Tensor | None:
    """Of each input channel, `[I]`, 1 on the geometric average; None without inputs."""
    if statistics is None or statistics.inputs is None:
        return None
    power = statistics.inputs.diagonal()
    factor = power.clamp_min(1e-8 * float(power.mean())).pow(_POWER / 2)
    return factor / factor.log().mean().exp()


def norm_shift(norm: nn.Module) -> float | None:
    """What is added to a norm's weight before it is multiplied with; None if that isn't all.

    Gemma's and Qwen3.5's norms add 1.
    """
    weight: Any = norm.weight
    x = torch.linspace(-1, 2, weight.shape[0]).sin().to(weight).reshape(1, 1, -1)
    with torch.no_grad():
        none, once, twice = (
            functional_call(norm, {"weight": torch.full_like(weight, value)}, (x,)).float()
            for value in (0.0, 1.0, 2.0)
        )
    for shift in (0.0, 1.0):
        normed = once / (1 + shift)
        if torch.allclose(none, shift * normed) and torch.allclose(twice, (2 + shift) * normed):
            return shift
    return None


def _apply(source: Any, statistics: WeightStatistics | None, factor: torch.Tensor) -> None:
    """Divides what computes the channels: rows of a linear layer, or a norm's weight."""
    if source.weight.dim() == 2:
        source.weight /= factor.unsqueeze(1)
        if statistics is not None and statistics.outputs is not None:
            statistics.outputs = statistics.outputs * factor.square()
        return
    shift = norm_shift(source)
    assert shift is not None
    source.weight.copy_((source.weight + shift) / factor - shift)


def _multiply(
    linears: list[Any], statistics: list[WeightStatistics | None], factor: torch.Tensor
) -> None:
    """Multiplies the weights that read the channels, and divides what is known of their inputs."""
    shared = statistics[0].inputs if statistics[0] is not None else None
    inputs = None if shared is None else shared.div_(torch.outer(factor, factor))
    for linear, of_linear in zip(linears, statistics, strict=True):
        linear.weight *= factor
        if of_linear is not None:
            of_linear.inputs = inputs
