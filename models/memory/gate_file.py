"""Files of trained gates, see `trained_file`."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.memory.feature_map import FeatureMap
from edgeinfinite.models.memory.gate import MemoryGate
from edgeinfinite.models.trained_file import load_into, read_layers, read_metadata, save_layers


def save_gate(path: Path, layers: list[nn.Module], metadata: dict[str, str]) -> None:
    """Writes the gates of `attach.attention_layers(model)` and their form.

    Args:
        path: the file, replaced atomically.
        layers: the attention layers with their gates.
        metadata: string to string; `feature_map` and `opening` are added.
    """
    gates: list[MemoryGate] = [layer.memory_gate for layer in layers]  # type: ignore[misc]
    form = {"feature_map": gates[0].feature_map.name, "opening": gates[0].opening}
    save_layers(path, gates, metadata | form)


def load_gate(path: Path, layers: list[nn.Module]) -> None:
    """Replaces every layer's `memory_gate` with the one in the file.

    Rank, feature map and opening come from the file; the last two default to the paper's.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, made for another backbone, holds NaN, or
            names an unknown form.
    """
    tensors_of = read_layers(path, len(layers), "gate")
    card = read_metadata(path)
    for layer, tensors in zip(layers, tensors_of, strict=True):
        old: MemoryGate = layer.memory_gate  # type: ignore[assignment]
        heads, head_dim = old.g.shape
        rank = tensors["w1.weight"].shape[0] if "w1.weight" in tensors else 1
        try:
            name = card.get("feature_map", "elu")
            feature_map = FeatureMap(name, old.feature_map.kv_heads, head_dim)
            opening = card.get("opening", "constant")
            gate = MemoryGate(heads, head_dim, rank, feature_map, opening).to(old.g.device)
        except EdgeInfiniteError as error:
            raise EdgeInfiniteError(f"gate file {path}: {error}") from error
        load_into(gate, tensors, path, "gate")
        layer.memory_gate = gate
