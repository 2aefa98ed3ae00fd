"""How much of local attention's error each form of gate explains, fitted layer by layer.

The first stage of `train-gate` (attention transfer) on some documents, measured on others with the
own memory, with another document's in its place (`swapped`), and for forms that are trained while
the memory reads zero. No gradient goes through the network, so a form takes seconds: a surrogate
for what it can do, and an upper bound, for the layers' inputs are those of full attention.

    python experiments/gate_forms.py --model MODEL --data FOLDER --json rows.json

Letters: H query heads, D head dimension, r rank of the gate.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from edgeinfinite.files import read_text_file
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attention_layers
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.memory.feature_map import FeatureMap
from edgeinfinite.models.memory.gate import MemoryGate
from edgeinfinite.rows_file import write_rows
from edgeinfinite.training.gate.lengths import Lengths
from edgeinfinite.training.gate.transfer import Seen, corrections, fit_layer, look_at
from edgeinfinite.training.texts import excerpt, find_documents, split_documents


@dataclass(frozen=True)
class Form:
    """A form of the gate, and how it is fitted.

    Args:
        feature_map, opening: see `models.configuration`.
        reads: `own`, or `zero` for a control.
        rank: r; None is D.
        one_g: g is one number a head.
        rate: factor on the learning rates.
        epochs: factor on the epochs.
    """

    feature_map: str = "learned"
    opening: str = "query"
    reads: str = "own"
    rank: int | None = None
    one_g: bool = False
    rate: float = 1.0
    epochs: float = 1.0


FORMS = {
    "memory reads zero, g": Form("elu", "constant", reads="zero"),
    "memory reads zero, g + u·q": Form("elu", reads="zero"),
    "memory reads zero, g + u·q + c p": Form("elu", "place", reads="zero"),
    "σ = ELU + 1, g (paper)": Form("elu", "constant"),
    "σ = softmax, g": Form("softmax", "constant"),
    "σ learned, g": Form(opening="constant"),
    "σ = ELU + 1, g + u·q": Form("elu"),
    "σ = softmax, g + u·q": Form("softmax"),
    "σ learned, g + u·q": Form(),
    "… opened by the place too": Form(opening="place"),
    "… one g a head": Form(one_g=True),
    "… r = 32": Form(rank=32),
    "… learning rates / 3": Form(rate=1 / 3),
    "… learning rates x 3": Form(rate=3.0),
    "… half the epochs": Form(epochs=0.5),
    "… twice the epochs": Form(epochs=2.0),
}


def main() -> None:
    """Prints a line for every form, the mean over layers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, nargs="+", type=Path)
    parser.add_argument("--fitted", type=int, default=20, help="documents to fit to")
    parser.add_argument("--measured", type=int, default=6, help="other documents, to measure on")
    parser.add_argument("--every", type=int, default=7, help="look at every Nth layer")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--sink-length", type=int, default=64)
    parser.add_argument("--segment-length", type=int, default=512)
    parser.add_argument("--segments", type=int, default=5, help="that read a memory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.model)
    if torch.cpu._is_avx512_bf16_supported():
        backbone.model.bfloat16()
    lengths = Lengths(arguments.sink_length, arguments.segment_length)
    random = np.random.default_rng(arguments.seed)
    parts = split_documents(find_documents(arguments.data), 0.25)
    counts = (arguments.fitted, arguments.measured)
    fitted, measured = (
        [paths[i] for i in random.permutation(len(paths))[:count]]
        for paths, count in zip(parts, counts, strict=True)
    )
    layers = list(range(1, len(attention_layers(backbone.model)), arguments.every))
    tokens = lengths.tokens(arguments.segments)
    seen = [
        _looked_at(backbone, paths, lengths, tokens, layers, seed)
        for seed, paths in enumerate((fitted, measured))
    ]
    rows: list[dict[str, Any]] = []
    print("| form | own | swapped |\n| --- | --- | --- |", flush=True)
    for name, form in FORMS.items():
        found = []
        for layer in layers:
            own, swapped = _explained(
                backbone,
                form,
                layer,
                [one[layer] for one in seen[0]],
                [one[layer] for one in seen[1]],
                arguments.epochs,
            )
            found.append((own, swapped))
            rows.append({"form": name, "layer": layer, "own": own, "swapped": swapped})
        own, swapped = (fmean(values) for values in zip(*found, strict=True))
        print(f"| {name} | {own:.3f} | {swapped:.3f} |", flush=True)
    if arguments.json:
        write_rows(arguments.json, "gate_forms", rows)


def _looked_at(
    backbone: Backbone,
    documents: list[Path],
    lengths: Lengths,
    tokens: int,
    layers: list[int],
    seed: int,
) -> list[dict[int, Seen]]:
    random, found = np.random.default_rng(seed), []
    for number, path in enumerate(documents):
        ids = excerpt(read_text_file(path), backbone.tokenizer, tokens, random)
        seen = look_at(backbone.model, torch.tensor(ids), lengths, number)
        found.append({layer: seen[layer] for layer in layers})
    return found


def _explained(
    backbone: Backbone,
    form: Form,
    layer: int,
    fitted: list[Seen],
    measured: list[Seen],
    epochs: int,
) -> tuple[float, float]:
    """Share of the squared error that is explained with the own and with another's memory."""
    facts = architecture_of(backbone.model)
    dim, heads = facts.head_dim, facts.query_heads
    torch.manual_seed(0)
    feature_map = FeatureMap(form.feature_map, facts.kv_heads, dim)
    gate = MemoryGate(heads, dim, form.rank or dim, feature_map, form.opening)
    gate.begin_with_identity()
    if form.one_g:
        gate.g.register_hook(lambda gradient: gradient.mean(1, keepdim=True).expand_as(gradient))
    output = attention_layers(backbone.model)[layer].o_proj.weight.float()
    epochs = round(epochs * form.epochs)
    fit_layer(gate, fitted, output, reads=form.reads, epochs=epochs, seed=0, rate=form.rate)
    whole, left, swapped = 0.0, 0.0, 0.0
    with torch.no_grad():
        for index, one in enumerate(measured):
            wanted = one.missed.float()
            whole += _size(wanted, output)
            for other in (one, measured[index - 1]):
                memory = None if form.reads == "zero" else other
                rest = _size(corrections(gate, one, memory) - wanted, output)
                if other is one:
                    left += rest
                else:
                    swapped += rest
    return 1 - left / whole, 1 - swapped / whole


def _size(x: torch.Tensor, output: torch.Tensor) -> float:
    return float((x.transpose(0, 1).flatten(1) @ output.T).square().sum())


if __name__ == "__main__":
    main()
