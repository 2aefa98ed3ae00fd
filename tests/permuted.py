"""A Llama with its channels in another order: the same function, weights off their old groups.

It stands in for a checkpoint that was never quantized: outliers stay, each with its channel, but
groups of neighbouring inputs, which a GGUF file rounds together, are torn apart.
"""

from __future__ import annotations

import copy

import torch
from transformers import PreTrainedModel


def permuted(model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel:
    """A copy that computes the same to rounding.

    Args:
        model: of Llama's architecture, its LM head tied or not, without biases.
        seed: of the orders.
    """
    twin = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    config = twin.config
    width, inner = config.hidden_size, config.intermediate_size
    residual = torch.randperm(width, generator=generator)
    tables = {id(w): w for w in (twin.model.embed_tokens.weight, twin.lm_head.weight)}
    with torch.no_grad():
        for table in tables.values():
            table.copy_(table[:, residual])
        twin.model.norm.weight.copy_(twin.model.norm.weight[residual])
        for layer in twin.model.layers:
            order = torch.randperm(inner, generator=generator)
            _permute(layer, residual, order, _value_order(config, generator))
    return twin


def _permute(
    layer: torch.nn.Module, residual: torch.Tensor, inner: torch.Tensor, values: torch.Tensor
) -> None:
    """One layer.

    Args:
        layer: changed.
        residual: the new order of the residual's channels, `[width]`.
        inner: of the MLP's, `[inner]`.
        values: of the channels of V, `[KV heads, head dimension]`.
    """
    attention, mlp = layer.self_attn, layer.mlp
    for norm in (layer.input_layernorm, layer.post_attention_layernorm):
        norm.weight.copy_(norm.weight[residual])
    for linear in (attention.q_proj, attention.k_proj):
        linear.weight.copy_(linear.weight[:, residual])
    kv_heads, size = values.shape
    heads = attention.o_proj.in_features // size
    rows = (torch.arange(kv_heads)[:, None] * size + values).flatten()
    attention.v_proj.weight.copy_(attention.v_proj.weight[rows][:, residual])
    repeated = values.repeat_interleave(heads // kv_heads, 0)
    columns = (torch.arange(heads)[:, None] * size + repeated).flatten()
    attention.o_proj.weight.copy_(attention.o_proj.weight[residual][:, columns])
    for linear in (mlp.gate_proj, mlp.up_proj):
        linear.weight.copy_(linear.weight[inner][:, residual])
    mlp.down_proj.weight.copy_(mlp.down_proj.weight[residual][:, inner])


def _value_order(config: object, generator: torch.Generator) -> torch.Tensor:
    size = config.hidden_size // config.num_attention_heads  # type: ignore[attr-defined]
    heads = range(config.num_key_value_heads)  # type: ignore[attr-defined]
    return torch.stack([torch.randperm(size, generator=generator) for _ in heads])
