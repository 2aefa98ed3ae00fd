"""Which form of the linear memory explains most of what local attention misses, layer by layer.

One forward pass of the frozen backbone with full attention a document, no training. For every
head and dimension A_full - A_dot (A_dot: sinks and own segment alone) is regressed on A_dot, a
constant and A_mem, on some documents, and the share explained is measured on others, behind the
output projection. Beside it stand the controls: without A_mem (`zero`), and with the memory of
another document in its place (`swapped`). An upper bound for a gate: the layer's inputs are those
of full attention.

    python experiments/memory_variants.py --model MODEL --data FOLDER --json rows.json

Letters: H query heads, K KV heads, S sinks, N segment, n positions that are looked at, D head
dimension, F features of a key.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface

from edgeinfinite.files import read_text_file
from edgeinfinite.models.attach import attention_layers
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.rows_file import write_rows
from edgeinfinite.training.texts import excerpt, find_documents, split_documents

SINKS, SEGMENT, SEGMENTS, EVERY = 64, 512, 6, 6
TOKENS = SINKS + SEGMENTS * SEGMENT
SEEN = torch.arange(0, SEGMENT, EVERY)
_ATTENTION = "edgeinfinite-memory-variants"
Feature = Callable[[torch.Tensor], torch.Tensor]


def _elu(x: torch.Tensor) -> torch.Tensor:
    return functional.elu(x) + 1


def _normalised(x: torch.Tensor) -> torch.Tensor:
    return _elu(x) / _elu(x).sum(-1, keepdim=True)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def _sharp_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(2 * x, -1)


def _one(x: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(x[..., :1])


@dataclass(frozen=True)
class Variant:
    """A form of the memory.

    Args:
        feature: σ; None stands for exact attention to all that left the cache, the ideal.
        rotated: keys and queries after RoPE, as the paper writes it.
        kept: share of M and z that a compression leaves of the older segments, 1 in the paper.
        delta: add v minus what the memory already returns for its key (Infini-attention).
        shared: A_mem and A_dot are weighed as full attention weighs them, for each query the share
            of its softmax that lies on what left the cache: an oracle of a denominator that local
            and memory part share.
        reads: False leaves A_mem out.
    """

    feature: Feature | None
    rotated: bool = True
    kept: float = 1.0
    delta: bool = False
    shared: bool = False
    reads: bool = True


VARIANTS = {
    "zero": Variant(None, reads=False),
    "zero, shared denominator": Variant(None, reads=False, shared=True),
    "paper: ELU + 1, after RoPE": Variant(_elu),
    "before RoPE": Variant(_elu, rotated=False),
    "normalised σ": Variant(_normalised),
    "normalised σ, delta rule": Variant(_normalised, delta=True),
    "forgets half each segment": Variant(_elu, kept=0.5),
    "last segment alone": Variant(_elu, kept=0.0),
    "σ = softmax": Variant(_softmax),
    "σ = softmax, before RoPE": Variant(_softmax, rotated=False),
    "σ = softmax, delta rule": Variant(_softmax, delta=True),
    "σ = softmax, last segment": Variant(_softmax, kept=0.0),
    "σ = softmax(2x), last segment": Variant(_sharp_softmax, kept=0.0),
    "mean of the values": Variant(_one),
    "ideal: exact attention to all": Variant(None),
    "paper, shared denominator": Variant(_elu, shared=True),
    "σ = softmax, shared denominator": Variant(_softmax, shared=True),
    "ideal, shared denominator": Variant(None, shared=True),
}


@dataclass(frozen=True)
class Layer:
    """One layer's pass over one document; q, k before RoPE."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    output: torch.Tensor
    table: RotaryTable

    def turned(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """After RoPE at positions: turning back by -p is turning forward."""
        cos, sin = self.table.cos, self.table.sin
        assert cos is not None and sin is not None
        return RotaryTable(cos, -sin).shift_back(x, positions)


def passes(
    backbone: Backbone, documents: list[Path], layers: list[int], seed: int
) -> Iterator[dict[int, Layer]]:
    """The chosen layers of every document's pass with full attention."""
    model, tables = backbone.model, rotary_tables(backbone.model, TOKENS)
    random, seen, places = np.random.default_rng(seed), {}, torch.arange(TOKENS)

    def watch(
        module: Any, q: Any, k: Any, v: Any, _mask: Any, scaling: Any = None, **_: Any
    ) -> Any:
        out = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=scaling, enable_gqa=True
        )
        if module.layer_idx in layers:
            table = tables[module.layer_idx]
            raw = (table.shift_back(x[0].float(), places) for x in (q, k))
            seen[module.layer_idx] = Layer(*raw, v[0].float(), out[0].float(), table)
        return out.transpose(1, 2), None

    AttentionInterface.register(_ATTENTION, watch)
    AttentionMaskInterface.register(_ATTENTION, lambda *_, **__: None)
    for path in documents:
        ids = excerpt(read_text_file(path), backbone.tokenizer, TOKENS, random)
        with torch.inference_mode(), attention_implementation(model, _ATTENTION):
            model(input_ids=torch.tensor([ids]), use_cache=False, logits_to_keep=1)
        yield dict(seen)


def segment_of(x: torch.Tensor, index: int) -> torch.Tensor:
    """`[heads, N, D]` of `[heads, T, D]`."""
    return x[:, SINKS + index * SEGMENT : SINKS + (index + 1) * SEGMENT]


def missed(layer: Layer) -> tuple[torch.Tensor, torch.Tensor]:
    """A_dot and A_full - A_dot, both `[H, segments * n, D]`."""
    slots = SINKS + torch.arange(SEGMENT)
    seen = torch.ones(SEGMENT, SINKS + SEGMENT, dtype=torch.bool).tril(SINKS)[SEEN]
    sinks = layer.turned(layer.key[:, :SINKS], torch.arange(SINKS))
    local, full = [], []
    for index in range(1, SEGMENTS):
        keys = torch.cat((sinks, layer.turned(segment_of(layer.key, index), slots)), 1)
        values = torch.cat((layer.value[:, :SINKS], segment_of(layer.value, index)), 1)
        queries = layer.turned(segment_of(layer.query, index)[:, SEEN], slots[SEEN])
        local.append(
            functional.scaled_dot_product_attention(
                queries[None], keys[None], values[None], attn_mask=seen, enable_gqa=True
            )[0]
        )
        full.append(segment_of(layer.output, index)[:, SEEN])
    return torch.cat(local, 1), torch.cat(full, 1) - torch.cat(local, 1)


def retrieved(layer: Layer, of: Layer, variant: Variant) -> torch.Tensor:
    """A_mem `[H, segments * n, D]` of a layer's queries, from the memory of the layer `of`."""
    heads, kv_heads = layer.query.shape[0], layer.key.shape[0]
    slots, found = SINKS + torch.arange(SEGMENT), []
    memory: torch.Tensor | float = 0.0
    norm: torch.Tensor | float = 0.0
    everywhere = torch.arange(TOKENS)
    for index in range(1, SEGMENTS):
        queries = segment_of(layer.query, index)[:, SEEN]
        if variant.feature is None:
            end = SINKS + index * SEGMENT
            queries = layer.turned(queries, end + SEEN)
            keys = of.turned(of.key[:, :end], everywhere[:end])
            found.append(
                functional.scaled_dot_product_attention(
                    queries[None], keys[None], of.value[None, :, :end], enable_gqa=True
                )[0]
            )
            continue
        keys, values = segment_of(of.key, index - 1), segment_of(of.value, index - 1)
        if variant.rotated:
            queries, keys = layer.turned(queries, slots[SEEN]), of.turned(keys, slots)
        features = variant.feature(keys)
        if variant.delta and index > 1:
            values = values - (features @ memory) / (features @ norm + 1e-6)
        memory = variant.kept * memory + features.transpose(1, 2) @ values
        norm = variant.kept * norm + features.sum(1).unsqueeze(-1)
        read = variant.feature(queries).reshape(kv_heads, -1, features.shape[-1])
        found.append(((read @ memory) / (read @ norm + 1e-6)).reshape(heads, len(SEEN), -1))
    return torch.cat(found, 1)


def far_share(layer: Layer) -> torch.Tensor:
    """How much of full attention's softmax lies on what left the cache, `[H, segments * n]`."""
    heads, kv_heads, dim = layer.query.shape[0], layer.key.shape[0], layer.query.shape[2]
    keys, shares = layer.turned(layer.key, torch.arange(TOKENS)), []
    for index in range(1, SEGMENTS):
        left = SINKS + index * SEGMENT
        end = left + SEGMENT
        queries = layer.turned(segment_of(layer.query, index)[:, SEEN], left + SEEN)
        grouped = queries.unflatten(0, (kv_heads, -1))
        scores = torch.einsum("kgnd,ktd->kgnt", grouped, keys[:, :end]) * dim**-0.5
        later = torch.arange(end) > (left + SEEN).unsqueeze(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        shares.append(weights[..., SINKS:left].sum(-1).reshape(heads, -1))
    return torch.cat(shares, 1)


def explaining(
    layer: Layer, of: Layer, variant: Variant, local: torch.Tensor
) -> list[torch.Tensor]:
    """What a variant explains the rest of full attention by, each `[H, segments * n, D]`."""
    memory = [retrieved(layer, of, variant)] if variant.reads else []
    if not variant.shared:
        return [local, *memory]
    share = far_share(layer).unsqueeze(-1)
    return [local, share * local, *(share * read for read in memory)]


class Regression:
    """Least squares of every head and dimension on few features, added up document by document.

    Args:
        by_position: every feature also times exp(-j/16) and exp(-j/128), j the place in the
            segment: what a gate could gain that knows how much local context there is.
    """

    def __init__(self, by_position: bool) -> None:
        place = SEEN.float().repeat(SEGMENTS - 1)
        factors = [torch.ones_like(place), torch.exp(-place / 16), torch.exp(-place / 128)]
        self._factors = torch.stack(factors[: 3 if by_position else 1], -1)
        self._left: torch.Tensor | float = 0.0
        self._right: torch.Tensor | float = 0.0

    def _design(self, features: list[torch.Tensor]) -> torch.Tensor:
        every = torch.stack([*features, torch.ones_like(features[0])], -1)  # [H, n, D, f]
        return (every.unsqueeze(-1) * self._factors[:, None, None]).flatten(-2)

    def add(self, features: list[torch.Tensor], wanted: torch.Tensor) -> None:
        """Takes in one document: features and what to explain, `[H, n, D]` each."""
        design = self._design(features)
        self._left = self._left + torch.einsum("hndf,hndg->hdfg", design, design)
        self._right = self._right + torch.einsum("hndf,hnd->hdf", design, wanted)

    def rest(self, features: list[torch.Tensor], wanted: torch.Tensor) -> torch.Tensor:
        """What stays unexplained of a document, `[H, n, D]`."""
        assert isinstance(self._left, torch.Tensor)
        ridge = 1e-3 * torch.diag_embed(self._left.diagonal(dim1=-2, dim2=-1))
        weights = torch.linalg.solve(self._left + ridge, self._right[..., None])[..., 0]
        return wanted - torch.einsum("hndf,hdf->hnd", self._design(features), weights)


def main() -> None:
    """Prints a line for every variant, the mean over layers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, nargs="+", type=Path)
    parser.add_argument("--fitted", type=int, default=12, help="documents to fit to")
    parser.add_argument("--measured", type=int, default=6, help="other documents, to measure on")
    parser.add_argument("--every", type=int, default=4, help="look at every Nth layer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, help="these variants (default: all)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.model)
    if torch.cpu._is_avx512_bf16_supported():
        backbone.model.bfloat16()
    fitted, measured = split_documents(find_documents(arguments.data), 0.25)
    random = np.random.default_rng(arguments.seed)
    fitted, measured = (
        [paths[i] for i in random.permutation(len(paths))[:count]]
        for paths, count in ((fitted, arguments.fitted), (measured, arguments.measured))
    )
    every = list(range(1, len(attention_layers(backbone.model)), arguments.every))
    variants = {name: VARIANTS[name] for name in arguments.only or VARIANTS}
    modes = [(name, by) for name in variants for by in (False, True)]
    fits = {(at, *mode): Regression(mode[1]) for at in every for mode in modes}
    for layers in passes(backbone, fitted, every, arguments.seed):
        for at, layer in layers.items():
            local, wanted = missed(layer)
            for name, variant in variants.items():
                features = explaining(layer, layer, variant, local)
                for by in (False, True):
                    fits[at, name, by].add(features, wanted)
    left: dict[tuple[int, str, bool, str], float] = {}
    before: dict[int, Layer] = {}
    for number, layers in enumerate(passes(backbone, measured, every, arguments.seed + 1)):
        for at, layer in layers.items():
            weight = attention_layers(backbone.model)[at].o_proj.weight.float()

            def size(x: torch.Tensor, weight: torch.Tensor = weight) -> float:
                return float((x.transpose(0, 1).flatten(1) @ weight.T).square().sum())

            if at not in before:  # the first document has no other one's memory yet
                continue
            local, wanted = missed(layer)
            sums = {("all", by, "own"): size(wanted) for by in (False, True)}
            for name, variant in variants.items():
                for which, of in (("own", layer), ("swapped", before[at])):
                    features = explaining(layer, of, variant, local)
                    for by in (False, True):
                        rest = fits[at, name, by].rest(features, wanted)
                        sums[name, by, which] = size(rest)
            for key, value in sums.items():
                left[at, *key] = left.get((at, *key), 0.0) + value
        before = layers
        print(f"{number + 1} of {len(measured)} documents", flush=True)
    rows = [
        {
            "variant": name,
            "by_position": by,
            "memory": which,
            "layer": at,
            "explained": 1 - value / left[at, "all", by, "own"],
        }
        for (at, name, by, which), value in left.items()
        if name != "all"
    ]
    print(
        "| variant | own | swapped | own, by position | swapped |\n| --- | --- | --- | --- | --- |"
    )
    for name in variants:
        cells = []
        for by in (False, True):
            for which in ("own", "swapped"):
                found = [
                    row["explained"]
                    for row in rows
                    if (row["variant"], row["by_position"], row["memory"]) == (name, by, which)
                ]
                cells.append(f"{np.mean(found):.3f}" if found else "")
        print(f"| {name} | " + " | ".join(cells) + " |")
    if arguments.json:
        write_rows(arguments.json, "memory_variants", rows)


if __name__ == "__main__":
    main()
