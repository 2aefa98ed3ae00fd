"""A gate for policy `carry`, fitted layer by layer to what its own sessions miss of full attention.

`train-gate` reads texts as `reencode` does. This reads them with the reference engine under `carry`
(window and recall slots as a user has them, the memory folded and not yet read), sets beside each
query what full attention finds, and fits the gates as the first stage of `train-gate` does; once
more while the memory reads zero, for the control. Then `evaluate perplexity --policy carry --gate
OUTPUT/own.safetensors --zero-gate OUTPUT/zero.safetensors` says whether the memory is worth it.

    python scripts/gate_under_carry.py --model smollm2-135m-instruct --data FOLDER --output FOLDER

Letters: L layers, H query heads, K KV heads, S sinks, N segment, W window, T tokens, n rows that
are looked at, D head dimension.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgeinfinite.models.attach import attach, attention_layers, head_dim_of
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.gate_file import save_gate
from edgeinfinite.models.geometry import CARRY_LENGTHS, CARRY_SLOTS, Geometry
from edgeinfinite.models.loading import Backbone, load_backbone
from edgeinfinite.models.shipped import shipped_scorer
from edgeinfinite.models.texts import excerpt, find_documents, split_documents
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session import Session
from edgeinfinite.runtime_py.state import State
from edgeinfinite.text_file import read_text_file
from edgeinfinite.training.gate_transfer import Seen, fit_layer

_CLOSED = -30.0
"""g of a gate that is called and changes nothing."""


class _WatchingEngine(TorchEngine):
    """Keeps the queries and what they find locally, and the pairs that are folded.

    Args:
        model: attached under `carry`, with closed gates.
        stride: every so-manieth token is looked at.
        offset: which ones.
    """

    def __init__(self, model: Any, stride: int, offset: int) -> None:
        super().__init__(model)
        self._stride, self._offset, self._read = stride, offset, 0
        layers = attention_layers(model)
        self.rows: list[int] = []
        self.queries: list[list[torch.Tensor]] = [[] for _ in layers]
        self.found: list[list[torch.Tensor]] = [[] for _ in layers]
        self.keys: list[list[torch.Tensor]] = [[] for _ in layers]
        self.values: list[list[torch.Tensor]] = [[] for _ in layers]
        self._hooks = [
            layer.memory_gate.register_forward_hook(self._watch(index))
            for index, layer in enumerate(layers)
        ]

    def close(self) -> None:
        """Takes the hooks off the model."""
        for hook in self._hooks:
            hook.remove()

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        places = range(self._read, self._read + tokens.shape[1])
        seen = state.has_memory[0] > 0
        self._picked = [
            i for i, p in enumerate(places) if seen and p % self._stride == self._offset
        ]
        self.rows += [places[i] for i in self._picked]
        logits = super().prefill_segment(tokens, state)
        self._read += tokens.shape[1]
        return logits

    def compress_memory(self, state: State) -> None:
        geometry = self.geometry
        for layer, length in enumerate(state.length.tolist()):
            end = length - geometry.window_length
            for name, kept in (("k", self.keys), ("v", self.values)):
                rows = state.arrays[f"{name}_cache_{layer}"][
                    0, :, end - geometry.segment_length : end
                ]
                kept[layer].append(torch.from_numpy(rows.copy()).half())
        super().compress_memory(state)

    def _watch(self, layer: int) -> Any:
        def hook(_module: Any, inputs: tuple[Any, ...], _output: torch.Tensor) -> None:
            self.queries[layer].append(inputs[0][0, :, self._picked].half())
            self.found[layer].append(inputs[3][0, :, self._picked].float())

        return hook


def watch_session(backbone: Backbone, tokens: list[int], number: int, stride: int) -> list[Seen]:
    """What every layer saw of a text that ends where a compression is due, but for the last one.

    Args:
        backbone: attached under `carry`, with closed gates.
        tokens: S + W + N + i N ids.
        number: of the text; it decides which queries are looked at.
        stride: every so-manieth token is looked at, a divisor of N.
    """
    model, layers = backbone.model, attention_layers(backbone.model)
    full: list[torch.Tensor] = []
    hooks = [
        layer.o_proj.register_forward_hook(lambda _m, inputs, _o: full.append(inputs[0][0]))
        for layer in layers
    ]
    with torch.no_grad():
        model(input_ids=torch.tensor([tokens]), use_cache=False, logits_to_keep=1)
    for hook in hooks:
        hook.remove()
    engine = _WatchingEngine(model, stride, number % stride)
    # The last segment's own compression would fold what nothing reads: one token less.
    Session(engine).append(tokens[:-1])
    engine.close()
    seen = []
    geometry = engine.geometry
    folds = len(engine.keys[0])
    count = folds * (geometry.segment_length // stride)
    for index in range(len(layers)):
        local = torch.cat(engine.found[index], 1)
        wanted = full[index][engine.rows].float().unflatten(1, (local.shape[0], -1)).transpose(0, 1)
        missed = wanted - local
        parts = (torch.cat(engine.queries[index], 1), local, missed)
        query, local, missed = (_padded(part.half(), count) for part in parts)
        key, value = (torch.stack(pairs[index], 1) for pairs in (engine.keys, engine.values))
        seen.append(Seen(query, local, missed, key, value))
    return seen


def _padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The token that wasn't read may have been one to look at: the last row stands twice then."""
    missing = count - rows.shape[1]
    return torch.cat((rows, rows[:, rows.shape[1] - missing :]), 1) if missing else rows


def main() -> None:
    """Writes OUTPUT/own.safetensors and OUTPUT/zero.safetensors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--segments", type=int, default=24, help="that read a memory, a document")
    parser.add_argument("--stride", type=int, default=8, help="looks at every so-manieth token")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--recall-slots", type=int, default=CARRY_SLOTS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.model)
    digest = backbone.weights_sha256
    scorer = shipped_scorer(digest)
    geometry = Geometry(**CARRY_LENGTHS, policy="carry", recall_slots=arguments.recall_slots)
    text = backbone.model.config.get_text_config()
    config = EdgeInfiniteConfig(
        geometry,
        gate_rank=head_dim_of(text),
        feature_map="learned",
        opening="query",
        scorer=str(scorer) if scorer else None,
    )
    attach(backbone.model, config)
    layers = attention_layers(backbone.model)
    for layer in layers:
        layer.memory_gate.g.data.fill_(_CLOSED)
    if torch.cpu._is_avx512_bf16_supported():
        backbone.model.bfloat16()
        for layer in layers:
            layer.memory_gate.float()
            if layer.retention_scorer is not None:
                layer.retention_scorer.float()
    fitted, held_out = split_documents(find_documents(arguments.data), 0.25)
    order = np.random.default_rng(arguments.seed).permutation(len(fitted))[: arguments.documents]
    random = np.random.default_rng(arguments.seed)
    fixed = geometry.sink_length + geometry.window_length
    tokens = fixed + (1 + arguments.segments) * geometry.segment_length
    seen = []
    for number, path in enumerate(fitted[i] for i in order):
        ids = excerpt(read_text_file(path), backbone.tokenizer, tokens, random)
        seen.append(watch_session(backbone, ids, number, arguments.stride))
        print(f"{number + 1} of {len(order)} documents", flush=True)
    card = {
        "backbone": backbone.name,
        "weights_sha256": digest,
        "geometry": json.dumps(geometry.to_dict()),
        "trained_on": json.dumps([fitted[i].name for i in order]),
        "held_out_documents": json.dumps([path.name for path in held_out]),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    for reads in ("own", "zero"):
        explained = []
        for index, layer in enumerate(layers):
            torch.manual_seed(arguments.seed)
            layer.memory_gate.begin_with_identity()
            if reads == "zero":  # as the first one began
                for name, tensor in layer.memory_gate.named_parameters():
                    if name in ("u", "feature_map.bias"):
                        tensor.data.zero_()
            explained.append(
                fit_layer(
                    layer.memory_gate,
                    [one[index] for one in seen],
                    layer.o_proj.weight.float(),
                    reads=reads,
                    epochs=arguments.epochs,
                    seed=arguments.seed,
                )
            )
        print(f"{reads}: explains {np.mean(explained):.3f} of what is missed", flush=True)
        for layer in layers:
            for tensor in layer.memory_gate.parameters():
                tensor.data = tensor.data.half().float()
        save_gate(arguments.output / f"{reads}.safetensors", layers, card)


if __name__ == "__main__":
    main()
