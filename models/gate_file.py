"""Trained gates on disk: one safetensors file, tensors `layers.{i}.{w1.weight, ..., g}`."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from edgeinfinite import EdgeInfiniteError
from edgeinfinite.models.gate import MemoryGate


def save_gate(path: Path, layers: list[nn.Module], metadata: dict[str, str]) -> None:
    """Writes the gates of `attach.attention_layers(model)`.

    Args:
        path: the file, replaced whole.
        layers: attention modules with a `memory_gate`.
        metadata: what is worth knowing about the training, string to string.
    """
    tensors = {
        f"layers.{index}.{name}": tensor.detach().cpu().contiguous()
        for index, layer in enumerate(layers)
        for name, tensor in layer.memory_gate.state_dict().items()  # type: ignore[union-attr, operator]
    }
    unfinished = path.with_name(path.name + ".partial")
    save_file(tensors, unfinished, metadata=metadata)
    unfinished.replace(path)


def load_gate(path: Path, layers: list[nn.Module]) -> None:
    """Replaces every layer's `memory_gate` by the one in the file; its rank is the file's.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, made for another backbone, or holds NaN.
    """
    if not path.is_file():
        raise EdgeInfiniteError(f"gate file {path} doesn't exist; give a .safetensors file")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise EdgeInfiniteError(f"gate file {path} can't be read: {error}") from error
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise EdgeInfiniteError(f"gate file {path}: {name} holds NaN or infinity")
    rank = tensors["layers.0.w1.weight"].shape[0] if "layers.0.w1.weight" in tensors else 1
    for index, layer in enumerate(layers):
        old: MemoryGate = layer.memory_gate  # type: ignore[assignment]
        heads, head_dim = old.g.shape
        gate = MemoryGate(heads, head_dim, rank).to(old.g.device)
        prefix = f"layers.{index}."
        own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        try:
            gate.load_state_dict(own)
        except RuntimeError as error:
            raise EdgeInfiniteError(
                f"gate file {path} doesn't fit this model (layer {index}: {heads} heads of "
                f"{head_dim}): {' '.join(str(error).split())}"
            ) from error
        layer.memory_gate = gate
    extra = len({name.split(".")[1] for name in tensors}) - len(layers)
    if extra:
        raise EdgeInfiniteError(
            f"gate file {path} has {extra + len(layers)} layers, this model {len(layers)}"
        )
