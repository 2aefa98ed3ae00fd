"""A Llama with its channels in another order: the same function, weights off their old groups.

It stands in for a checkpoint that was never quantized: outliers stay, each with its channel, but
groups of neighbouring inputs, which a GGUF file rounds together, are torn apart. Keys stay as they
are and values change places within their head, so the trained scorer can be permuted along.

    python tests/permuted.py FOLDER     # the demo model as a checkpoint, its scorer inside
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from transformers import PreTrainedModel

from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone
from edgeinfinite.models.recall.scorer_file import load_scorers, read_rank_rule, save_scorers
from edgeinfinite.models.shipped import shipped_scorer
from edgeinfinite.models.trained_file import read_metadata

SCORER = "scorer.safetensors"


def permuted(model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel:
    """A copy that computes the same to rounding.

    Args:
        model: of Llama's architecture, its LM head tied or not, without biases.
        seed: of the orders.
    """
    twin = copy.deepcopy(model)
    residual, layers = _orders(twin.config, seed)
    tables = {id(w): w for w in (twin.model.embed_tokens.weight, twin.lm_head.weight)}
    with torch.no_grad():
        for table in tables.values():
            table.copy_(table[:, residual])
        twin.model.norm.weight.copy_(twin.model.norm.weight[residual])
        for layer, (inner, values) in zip(twin.model.layers, layers, strict=True):
            _permute(layer, residual, inner, values)
    return twin


def write_permuted_scorer(
    source: Path, target: Path, model: PreTrainedModel, seed: int = 0
) -> None:
    """A trained scorer that gives the permuted model's pairs the scores they had.

    Args:
        source: the scorer of the model in its own order.
        target: to be written.
        model: either of the two.
        seed: of the orders.
    """
    config = model.config
    size = config.hidden_size // config.num_attention_heads
    layers = config.num_hidden_layers
    scorers = load_scorers(source, layers, config.num_key_value_heads, size)
    for scorer, (_, values) in zip(scorers, _orders(config, seed)[1], strict=True):
        for head, order in enumerate(values):
            inputs = size + order  # the keys come first
            for tensor in (scorer.mean, scorer.deviation):
                tensor[head, :, size:] = tensor[head, :, inputs]
            scorer.w1.data[head, size:] = scorer.w1.data[head, inputs]
    save_scorers(target, scorers, read_rank_rule(source), read_metadata(source))


def write_permuted_demo_model(folder: Path) -> None:
    """The demo model as a checkpoint in its new order, its scorer as `SCORER` beside it."""
    demo = load_backbone(DEMO_MODEL)
    permuted(demo.model).save_pretrained(folder)
    demo.tokenizer.save_pretrained(folder)
    scorer = shipped_scorer(demo.weights_sha256)
    assert scorer is not None
    write_permuted_scorer(scorer, folder / SCORER, demo.model)


def _orders(
    config: object, seed: int
) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
    """The new order of the residual's channels, and for each layer the MLP's and the values'."""
    generator = torch.Generator().manual_seed(seed)
    residual = torch.randperm(config.hidden_size, generator=generator)  # type: ignore[attr-defined]
    inner = config.intermediate_size  # type: ignore[attr-defined]
    layers = range(config.num_hidden_layers)  # type: ignore[attr-defined]
    return residual, [
        (torch.randperm(inner, generator=generator), _value_order(config, generator))
        for _ in layers
    ]


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


if __name__ == "__main__":
    write_permuted_demo_model(Path(sys.argv[1]))
