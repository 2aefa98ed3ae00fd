"""Files of trained parts: safetensors with tensors `layers.{i}.{name}` for every layer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import replacing


def save_layers(path: Path, modules: Sequence[nn.Module], metadata: dict[str, str]) -> None:
    """Writes one module per layer and replaces the file atomically; see `files.replacing`.

    Tensors that float16 represents exactly are stored as float16.

    Args:
        path: the file.
        modules: in the order of the layers.
        metadata: the card, facts about the training, string to string.
    """
    tensors = {
        f"layers.{index}.{name}": _smallest(tensor.detach().cpu().contiguous())
        for index, module in enumerate(modules)
        for name, tensor in module.state_dict().items()
    }
    with replacing_tensors(path) as unfinished:
        save_file(tensors, unfinished, metadata=metadata)


@contextmanager
def replacing_tensors(path: Path) -> Iterator[Path]:
    """`files.replacing` for what safetensors writes, whose errors are no OSErrors.

    Raises:
        EdgeInfiniteError: it can't be written, such as on a full disk; an old file isn't changed.
    """
    try:
        with replacing(path) as unfinished:
            yield unfinished
    except SafetensorError as error:
        raise EdgeInfiniteError(f"{path} can't be written: {error}") from error


def _smallest(tensor: torch.Tensor) -> torch.Tensor:
    half = tensor.half()
    return half if torch.equal(half.to(tensor.dtype), tensor) else tensor


def read_layers(path: Path, layers: int, what: str) -> list[dict[str, torch.Tensor]]:
    """The tensors of every layer, by name.

    Args:
        path: the file.
        layers: how many the model has.
        what: the kind of part for messages, such as `gate`.

    Raises:
        EdgeInfiniteError: the file is missing or damaged, holds NaN or infinity, or has another
            number of layers.
    """
    if not path.is_file():
        raise EdgeInfiniteError(f"{what} file {path} doesn't exist; give a .safetensors file")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise EdgeInfiniteError(f"{what} file {path} can't be read: {error}") from error
    found: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise EdgeInfiniteError(f"{what} file {path}: {name} holds NaN or infinity")
        _, index, rest = [*name.split(".", 2), "", ""][:3]
        found.setdefault(index, {})[rest] = tensor
    if set(found) != {str(index) for index in range(layers)}:
        raise EdgeInfiniteError(f"{what} file {path} has {len(found)} layers, this model {layers}")
    return [found[str(index)] for index in range(layers)]


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a file that `read_layers` accepts."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def modules_digest(modules: Sequence[nn.Module], form: str) -> str:
    """sha256 over the tensors of one module per layer, and over their form.

    It isn't taken over the file, because safetensors may write the card's entries in any order.

    Args:
        modules: in the order of the layers.
        form: everything else that decides what they compute, such as the feature map's name.
    """
    digest = hashlib.sha256(form.encode())
    for index, module in enumerate(modules):
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(f"{index}.{name}".encode())
            digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()


def load_into(module: nn.Module, tensors: dict[str, torch.Tensor], path: Path, what: str) -> None:
    """Loads tensors into a module.

    Raises:
        EdgeInfiniteError: names or shapes don't match, so the file is for another backbone.
    """
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise EdgeInfiniteError(f"{what} file {path} doesn't fit this model: {reason}") from error
