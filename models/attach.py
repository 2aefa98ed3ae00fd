"""Attaching EdgeInfinite to a transformers causal LM; the backbone's weights don't change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import Architecture, architecture_of
from edgeinfinite.models.attention.call import own_caches
from edgeinfinite.models.configuration import (
    INT8_CACHE,
    NO_GATE,
    UNTRAINED_GATE,
    UNTRAINED_SCORER,
    EdgeInfiniteConfig,
)
from edgeinfinite.models.int8_cache.scales import CacheScales, load_cache_scales
from edgeinfinite.models.memory.feature_map import FeatureMap
from edgeinfinite.models.memory.gate import MemoryGate, default_rank
from edgeinfinite.models.memory.gate_file import load_gate
from edgeinfinite.models.recall.angles import check_length
from edgeinfinite.models.recall.movement import measure_movements
from edgeinfinite.models.recall.ranking import keeps_scores
from edgeinfinite.models.recall.scorer_file import (
    load_scorers,
    read_rank_rule,
    untrained_scorers,
)
from edgeinfinite.models.sliding import with_windows


def attach(model: PreTrainedModel, config: EdgeInfiniteConfig) -> PreTrainedModel:
    """Adds modules to the attention layers of a RoPE decoder and freezes the backbone.

    The modules are `memory_gate`, unless the gate is `none`, `retention_scorer`, if the geometry
    has recall slots, and `cache_scales`, if the configuration names a file of them. The other
    attributes are None.

    Without a state, the model computes exactly what the base model does; `run_tokens` of
    `attention/interface.py` runs it with a state. Attaching again replaces the modules.

    Args:
        model: a causal LM of transformers, any float dtype.
        config: geometry, gate and scorer.

    Returns:
        The same model, in evaluation mode, with `model.edgeinfinite_config` set. Its geometry has
        the backbone's sliding windows.

    Raises:
        EdgeInfiniteError: the model isn't a RoPE decoder that attends through transformers'
            attention interface, `carry` can't move its keys, the cache is longer than its trained
            positions, a file doesn't fit it, or recall slots have no scorer.
    """
    facts = architecture_of(model)
    config = replace(config, geometry=with_windows(config.geometry, facts))
    _check_positions(facts, config.geometry)
    check_length(model, config.geometry.capacity)
    if facts.recurrent and config.geometry.policy != "carry":
        raise EdgeInfiniteError(
            f"{facts.name} has layers whose state isn't a KV cache and can't read a token twice, "
            f"as --policy {config.geometry.policy} does; give --policy carry"
        )
    if config.geometry.policy == "carry":
        measure_movements(model, config.geometry.capacity)  # refuses keys that can't be moved
    layers = attention_layers(model)
    model.requires_grad_(False).eval()
    for layer in layers:
        layer.memory_gate = layer.retention_scorer = layer.cache_scales = None
    model.edgeinfinite_rank_rule = RankRule()  # type: ignore[assignment]
    if config.gate != NO_GATE:
        if facts.readers or facts.heads:
            raise EdgeInfiniteError(
                f"{facts.name} has layers that share a cache or differ in heads, which no memory "
                "holds; give --gate none"
            )
        if config.geometry.has_windows:
            raise EdgeInfiniteError(
                f"{facts.name} has layers with sliding windows, whose tokens no memory holds; give "
                "--gate none, or --policy reencode"
            )
        _add_gates(layers, config, facts, backbone_parameters(model))
        if config.gate != UNTRAINED_GATE:
            load_gate(Path(config.gate), layers)
    config.geometry.capacities(len(layers))  # refuses slots for another number of layers
    if config.geometry.recall_slots:
        _add_scorers(model, layers, config, facts)
    if config.cache_scales is not None:
        sizes = len(layers), facts.kv_heads, facts.head_dim
        found = load_cache_scales(Path(config.cache_scales), *sizes, facts.heads)
        for layer, scales in zip(layers, found, strict=True):
            layer.cache_scales = scales.to(model.device)
    model.edgeinfinite_config = config  # type: ignore[assignment]
    return model


def config_of(model: PreTrainedModel) -> EdgeInfiniteConfig:
    """The configuration that `attach` was given."""
    config = model.edgeinfinite_config
    assert isinstance(config, EdgeInfiniteConfig)
    return config


def rank_rule_of(model: PreTrainedModel) -> RankRule:
    """The rank rule of an attached model's scorer; the default rule without a scorer."""
    rule = model.edgeinfinite_rank_rule
    assert isinstance(rule, RankRule)
    return rule


def attention_layers(model: PreTrainedModel) -> list[Any]:
    """The attention modules that hold a cache, in order, with `attach`'s own modules.

    Some layers don't attend, and some read the cache of an earlier one.
    """
    architecture_of(model)  # which these are is measured
    return own_caches(model.get_decoder().layers)


def gate_parameters(model: PreTrainedModel) -> list[nn.Parameter]:
    """The gates' parameters, the only ones that gate training changes."""
    return [p for name, p in model.named_parameters() if ".memory_gate." in name]


def scored_layers(model: PreTrainedModel) -> dict[int, int]:
    """G by layer index, for the layers of an attached model whose recall slots have scores."""
    geometry = config_of(model).geometry
    return {
        index: geometry.slots_of(index)
        for index, layer in enumerate(attention_layers(model))
        if keeps_scores(geometry, index, layer.retention_scorer)
    }


def cache_scales_of(model: PreTrainedModel) -> list[CacheScales | None]:
    """The scales of an attached model's int8 cache, by layer; None in each for another cache.

    Raises:
        EdgeInfiniteError: the cache is int8 and its scales aren't there yet.
    """
    layers = attention_layers(model)
    if config_of(model).cache_type != INT8_CACHE:
        return [None] * len(layers)
    if any(layer.cache_scales is None for layer in layers):
        raise EdgeInfiniteError(
            "an int8 cache has no scales yet; measure them with int8_cache.measure, or name a file "
            "in the configuration"
        )
    return [layer.cache_scales for layer in layers]


def feature_maps(model: PreTrainedModel) -> list[FeatureMap]:
    """σ of every layer of an attached model with gates."""
    return [layer.memory_gate.feature_map for layer in attention_layers(model)]


def backbone_parameters(model: PreTrainedModel) -> int:
    """Number of the backbone's parameters: tied ones count once, attached modules don't count."""
    own = (".memory_gate.", ".retention_scorer.")
    return sum(p.numel() for n, p in model.named_parameters() if not any(o in n for o in own))


def _check_positions(facts: Architecture, geometry: Geometry) -> None:
    if geometry.capacity <= facts.positions:
        return
    parts = {
        "sinks": geometry.sink_length,
        "recall slots": geometry.most_slots,
        "segment": geometry.segment_length,
        "window": geometry.window_length,
    }
    shown = " + ".join(f"{count} {name}" for name, count in parts.items() if count)
    raise EdgeInfiniteError(
        f"{shown} = {geometry.capacity} slots, but {facts.name} was trained on {facts.positions} "
        f"positions; choose {'fewer of them' if geometry.most_slots else 'shorter lengths'}"
    )


def _add_gates(
    layers: list[nn.Module], config: EdgeInfiniteConfig, facts: Architecture, backbone: int
) -> None:
    heads, head_dim = facts.query_heads, facts.head_dim
    rank = config.gate_rank or default_rank(backbone, len(layers), heads, head_dim)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        for layer in layers:
            where = layer.q_proj if hasattr(layer, "q_proj") else next(layer.children())
            device = next(where.parameters()).device  # type: ignore[union-attr]
            feature_map = FeatureMap(config.feature_map, facts.kv_heads, head_dim)
            gate = MemoryGate(heads, head_dim, rank, feature_map, config.opening)
            layer.memory_gate = gate.to(device)


def _add_scorers(
    model: PreTrainedModel, layers: list[nn.Module], config: EdgeInfiniteConfig, facts: Architecture
) -> None:
    if config.scorer is None:
        raise EdgeInfiniteError(
            "recall slots need a retention scorer, and none is shipped for this model; give "
            "--scorer FILE, made with train-scorer"
        )
    sizes = len(layers), facts.kv_heads, facts.head_dim
    if config.scorer == UNTRAINED_SCORER:
        scorers, rule = untrained_scorers(*sizes, config.seed, facts.heads), RankRule()
    else:
        path = Path(config.scorer)
        scorers = load_scorers(path, *sizes, facts.heads)
        rule = read_rank_rule(path)
    for layer, scorer in zip(layers, scorers, strict=True):
        layer.retention_scorer = scorer.to(model.device)
    model.edgeinfinite_rank_rule = rule  # type: ignore[assignment]
