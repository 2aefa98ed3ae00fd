"""How far a gate is open over layers and heads, with a plot and the loss by position.

sig(g) for a gate of the paper's form; for one that the query opens its s on the tokens of a text.

    python experiments/gate_openings.py GATE.safetensors --model MODEL --text BOOK.txt \
        --rows rows.json --plot gate.png

Letters: L layers, H heads, T tokens, D head dimension.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def openings(gate: Path) -> np.ndarray:
    """sig(g) `[L, H, D]` of a gate's file."""
    tensors = load_file(gate)
    layers = sum(name.endswith(".g") for name in tensors)
    g = np.stack([tensors[f"layers.{layer}.g"] for layer in range(layers)])
    return 1 / (1 + np.exp(-g.astype(np.float64)))


def openings_on(gate: Path, model: str, text: Path, segments: int = 4) -> np.ndarray:
    """s `[L, H, T]`, the mean over D, of the tokens of a text that read a memory."""
    import torch

    from edgeinfinite.artifact.geometry import Geometry
    from edgeinfinite.files import read_text_file
    from edgeinfinite.models.attach import attach, attention_layers
    from edgeinfinite.models.checkpoint.loading import load_backbone
    from edgeinfinite.models.configuration import EdgeInfiniteConfig
    from edgeinfinite.models.trained_file import read_metadata
    from edgeinfinite.training.gate.lengths import Lengths
    from edgeinfinite.training.gate.segments import SegmentState, read_segments
    from edgeinfinite.training.texts import encode

    geometry = Geometry.from_dict(json.loads(read_metadata(gate)["geometry"]))
    backbone = load_backbone(model)
    attached = attach(backbone.model, EdgeInfiniteConfig(geometry, gate=str(gate)))
    lengths = Lengths(geometry.sink_length, geometry.segment_length)
    tokens = torch.tensor(encode(read_text_file(text), backbone.tokenizer))
    found: list[list[torch.Tensor]] = []

    def watch(module: torch.nn.Module, inputs: tuple, _output: torch.Tensor) -> None:
        query, log_position = inputs[0], inputs[5]
        found[-1].append(module.share(query, log_position).mean(-1).expand(query.shape[:3])[0])

    state = SegmentState(attached, lengths)
    for layer in attention_layers(attached):
        layer.memory_gate.register_forward_hook(watch)
    attention_layers(attached)[0].register_forward_pre_hook(lambda *_: found.append([]))
    with torch.no_grad():
        for _ in read_segments(attached, tokens[: lengths.tokens(segments)], state, lengths):
            pass
    return torch.cat([torch.stack(part) for part in found[1:]], 2).double().numpy()


def losses(rows: Path) -> dict[str, tuple[list[float], list[float]]]:
    """Of each method the middles of the bins, and nats per token over all documents."""
    found: dict[str, dict[float, list[tuple[float, int]]]] = {}
    for row in json.loads(rows.read_text())["rows"]:
        middle = (row["bin_start"] + row["bin_end"]) / 2
        bins = found.setdefault(row["method"], {})
        bins.setdefault(middle, []).append((row["nats_per_token"], row["tokens"]))
    return {
        method: (
            sorted(bins),
            [
                sum(n * t for n, t in bins[middle]) / sum(t for _, t in bins[middle])
                for middle in sorted(bins)
            ],
        )
        for method, bins in found.items()
    }


def plot(opened: np.ndarray, rows: Path | None, path: Path) -> None:
    """Heat map of the openings `[L, H, n]`.

    Where rows are given, beside it the loss of every method less that of `memory-off`.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, 2 if rows else 1, figsize=(10 if rows else 5, 4), layout="constrained", squeeze=False
    )
    image = panels[0][-1].imshow(opened.mean(2).T, aspect="auto", cmap="viridis")
    panels[0][-1].set(xlabel="layer", ylabel="head", title="mean opening")
    figure.colorbar(image, ax=panels[0][-1])
    if rows:
        lines = losses(rows)
        reference = dict(zip(*lines["memory-off"], strict=True))
        for method, (middles, values) in lines.items():
            gained = [v - reference[m] for m, v in zip(middles, values, strict=True)]
            panels[0][0].plot(middles, gained, marker="o", label=method)
        panels[0][0].set(xlabel="position (tokens)", ylabel="nats per token, less memory-off")
        panels[0][0].grid(alpha=0.3)
        panels[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Prints a line for every layer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("gate", type=Path)
    parser.add_argument("--model", help="with --text, for a gate that the query opens")
    parser.add_argument("--text", type=Path, help="that training hasn't seen")
    parser.add_argument("--rows", type=Path, help="of evaluate perplexity, with memory-off")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    opened = openings(arguments.gate)
    if arguments.model and arguments.text:
        opened = openings_on(arguments.gate, arguments.model, arguments.text)
    for name, part in [("all", opened), *((f"layer {i}", p) for i, p in enumerate(opened))]:
        quantiles = np.quantile(part, (0.05, 0.5, 0.95))
        print(
            f"{name:<9} mean {part.mean():.3f}, 5 % {quantiles[0]:.3f}, median {quantiles[1]:.3f}, "
            f"95 % {quantiles[2]:.3f}, most {part.max():.3f}, heads "
            f"{part.reshape(-1, *part.shape[-2:]).mean((0, 2)).round(3).tolist()}"
        )
    if arguments.plot:
        plot(opened, arguments.rows, arguments.plot)


if __name__ == "__main__":
    main()
