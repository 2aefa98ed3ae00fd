"""Gates for policy `carry`, trained through its own sessions, and the control that reads zeros.

`train-gate` reads texts as `reencode` does. This reads them under `carry`, window and recall slots
as a user has them, in two stages. Layer by layer: the reference engine reads texts, the memory
folded and not yet read; beside each query stands what full attention finds, and the gates are
fitted to what is missed. Through the network: stretches are read with the memory, and every few
segments are a step down the divergence from full attention, or the cross-entropy. Both stages once
more while the memory reads zero, for the control. Then `evaluate perplexity --policy carry --gate
OUTPUT/own.safetensors --zero-gate OUTPUT/zero.safetensors` says whether the memory is worth it.

    python experiments/gate_under_carry.py --model MODEL --data FOLDER --output FOLDER

Letters: L layers, H query heads, K KV heads, S sinks, N segment, W window, T tokens, n rows that
are looked at, D head dimension.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from edgeinfinite.files import read_text_file
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.memory.gate_file import load_gate, save_gate
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import State
from edgeinfinite.training.gate.loss import Teacher, watch_teacher
from edgeinfinite.training.gate.options import LOSSES, MEMORIES
from edgeinfinite.training.gate.run import Metrics
from edgeinfinite.training.gate.transfer import Seen, fit_layer
from edgeinfinite.training.texts import excerpt, find_documents, split_documents
from gate_carry import Course, train_through_sessions

_CLOSED = -30.0
"""g of a gate that is called and changes nothing."""

_BEGAN = time.monotonic()


class _WatchingEngine(TorchEngine):
    """Keeps the queries and what they find locally, and the pairs that are folded.

    Args:
        model: attached under `carry`, with closed gates.
        stride: of so many tokens one is looked at.
        offset: which one of them.
    """

    def __init__(self, model: Any, stride: int, offset: int) -> None:
        super().__init__(model)
        self._stride, self._offset, self._read = stride, offset, 0
        layers = attention_layers(model)
        self.rows: list[int] = []
        self.queries: list[list[torch.Tensor]] = [[] for _ in layers]
        self.found: list[list[torch.Tensor]] = [[] for _ in layers]
        self.places: list[torch.Tensor] = []
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
            if layer == 0:
                self.places.append(inputs[5][self._picked])

        return hook


def watch_session(backbone: Backbone, tokens: list[int], number: int, stride: int) -> list[Seen]:
    """What every layer saw of a text that ends where a compression is due, but for the last one.

    Args:
        backbone: attached under `carry`, with closed gates.
        tokens: S + W + N + i N ids.
        number: of the text; it decides which queries are looked at.
        stride: of so many tokens one is looked at, a divisor of N.
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
        place = _padded(torch.cat(engine.places)[None, :, None], count)[0, :, 0]
        seen.append(Seen(query, local, missed, key, value, place))
    return seen


def _padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The token that wasn't read may have been one to look at: the last row stands twice then."""
    missing = count - rows.shape[1]
    return torch.cat((rows, rows[:, rows.shape[1] - missing :]), 1) if missing else rows


def _fresh_gates(model: PreTrainedModel, config: EdgeInfiniteConfig) -> list[Any]:
    """The layers, with gates that begin with Ã = A_mem; in float32 whatever the backbone is."""
    attach(model, config)
    layers = attention_layers(model)
    torch.manual_seed(config.seed)
    for layer in layers:
        layer.memory_gate.begin_with_identity()
    return layers


def _save(path: Path, layers: list[Any], card: dict[str, str]) -> None:
    for layer in layers:
        for tensor in layer.memory_gate.parameters():
            tensor.data = tensor.data.half().float()
    save_gate(path, layers, card)


def _show(what: str, done: float) -> None:
    print(f"{what}: {100 * done:.0f} %, {time.monotonic() - _BEGAN:.0f} s", flush=True)


def main() -> None:
    """Writes gates, their first stage, and a row for every step to the output folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--recall-slots", default="trained:512")
    parser.add_argument("--documents", type=int, default=5, help="of the first stage; 0: none")
    parser.add_argument("--first", type=Path, help="folder of another run: its first stage")
    parser.add_argument("--segments", type=int, default=24, help="that read a memory, a document")
    parser.add_argument("--stride", type=int, default=8, help="look at every Nth token")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--stretches", type=int, default=14, help="of the second stage; 0: none")
    parser.add_argument("--tokens", type=int, default=5120, help="of a stretch")
    parser.add_argument("--together", type=int, default=4, help="segments that share a step")
    parser.add_argument("--every", type=int, default=2, help="learn from every Nth group")
    parser.add_argument("--loss", choices=LOSSES, default="distillation")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--opening-learning-rate", type=float, default=0.05)
    parser.add_argument("--reads", choices=MEMORIES, nargs="+", default=list(MEMORIES))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.model)
    model, digest = backbone.model, backbone.weights_sha256
    slots = arguments.recall_slots
    asked = GeometryOptions("carry", recall_slots=int(slots) if slots.isdecimal() else slots)
    config = resolve(backbone, ModelOptions(asked)).config
    geometry, scorer = config.geometry, config.scorer
    if torch.cpu._is_avx512_bf16_supported():
        model.bfloat16()
    form = {"feature_map": "learned", "opening": "place", "seed": arguments.seed}
    rank = architecture_of(model).head_dim
    config = EdgeInfiniteConfig(geometry, gate_rank=rank, scorer=scorer, **form)
    fitted, held_out = split_documents(find_documents(arguments.data), 0.25)
    random = np.random.default_rng(arguments.seed)
    order = [fitted[i] for i in random.permutation(len(fitted))]

    def texts(count: int, tokens: int) -> list[torch.Tensor]:
        paths = [order[number % len(order)] for number in range(count)]
        read = (excerpt(read_text_file(p), backbone.tokenizer, tokens, random) for p in paths)
        return [torch.tensor(ids) for ids in read]

    fixed = geometry.sink_length + geometry.window_length
    length = fixed + (1 + arguments.segments) * geometry.segment_length
    for layer in _fresh_gates(model, config):
        layer.memory_gate.g.data.fill_(_CLOSED)
    seen = []
    watched = texts(arguments.documents, length)  # drawn in any case: the stretches come after
    for number, tokens in enumerate(watched if arguments.first is None else ()):
        seen.append(watch_session(backbone, tokens.tolist(), number, arguments.stride))
        _show("watching sessions", (number + 1) / arguments.documents)
    stretches = texts(arguments.stretches, arguments.tokens)
    teachers: list[Teacher | None] = [None] * len(stretches)
    if arguments.loss == "distillation":
        for number, tokens in enumerate(stretches):
            teachers[number] = watch_teacher(model, tokens)
            _show("reading with full attention", (number + 1) / len(stretches))
    places = ("model", "data", "output", "first")
    options = {name: v for name, v in vars(arguments).items() if name not in places}
    card = {
        "backbone": backbone.name,
        "weights_sha256": digest,
        "geometry": json.dumps(geometry.to_dict()),
        "options": json.dumps(options),
        "trained_on": json.dumps([path.name for path in fitted]),
        "held_out_documents": json.dumps([path.name for path in held_out]),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    course = Course(arguments.together, arguments.every)
    rates = arguments.learning_rate, arguments.opening_learning_rate
    for reads in arguments.reads:
        layers = _fresh_gates(model, config)
        if arguments.first is not None:
            load_gate(arguments.first / f"{reads}-first.safetensors", layers)
        explained = []
        for index, layer in enumerate(layers if seen else ()):
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
        if seen:
            _show(f"{reads}: explains {np.mean(explained):.3f} of what is missed", 1.0)
            _save(arguments.output / f"{reads}-first.safetensors", layers, card)
        if not stretches:
            continue
        rows = train_through_sessions(
            model, stretches, teachers, course, reads=reads, rates=rates, progress=_show
        )
        metrics = Metrics(arguments.output / f"{reads}.jsonl", 0)
        metrics.add(rows)
        metrics.plot(arguments.output / f"{reads}.png")
        _save(arguments.output / f"{reads}.safetensors", layers, card)


if __name__ == "__main__":
    main()
