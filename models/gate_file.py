"""Trained gates on disk, see `trained_file`."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from edgeinfinite.models.gate import MemoryGate
from edgeinfinite.models.trained_file import load_into, read_layers, save_layers


def save_gate(path: Path, layers: list[nn.Module], metadata: dict[str, str]) -> None:
    """Writes the gates of `attach.attention_layers(model)`; metadata is string to string."""
    save_layers(path, [layer.memory_gate for layer in layers], metadata)  # type: ignore[misc]


def load_gate(path: Path, layers: list[nn.Module]) -> None:
    """Replaces every layer's `memory_gate` by the one in the file; its rank is the file's.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, made for another backbone, or holds NaN.
    """
    for layer, tensors in zip(layers, read_layers(path, len(layers), "gate"), strict=True):
        old: MemoryGate = layer.memory_gate  # type: ignore[assignment]
        heads, head_dim = old.g.shape
        rank = tensors["w1.weight"].shape[0] if "w1.weight" in tensors else 1
        gate = MemoryGate(heads, head_dim, rank).to(old.g.device)
        load_into(gate, tensors, path, "gate")
        layer.memory_gate = gate
