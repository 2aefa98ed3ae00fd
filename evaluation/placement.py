"""Where the methods of a checkpoint compute: on the CPU, or on a GPU with `--device`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch

from edgeinfinite.artifact.tensors import TensorSpec
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

_COUNTERS = ("length", "has_memory")


def device_of(name: str) -> torch.device:
    """The device that `--device` names.

    Args:
        name: `cpu`, `cuda` (each process of `accelerate launch` gets the next GPU of its machine,
            from the first again if there are more processes than GPUs) or `cuda:N`.

    Raises:
        EdgeInfiniteError: the name is another one, or this torch finds no such GPU.
    """
    kind, numbered, index = name.partition(":")
    if name == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or (numbered and not index.isdecimal()):
        raise EdgeInfiniteError(f"--device {name!r}: choose cpu, cuda or cuda:N")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not found:
        raise EdgeInfiniteError(
            f"--device {name}: torch {torch.__version__} finds no GPU; install a build of torch "
            "for CUDA, or leave --device out"
        )
    number = int(index) if numbered else int(os.environ.get("LOCAL_RANK", "0")) % found
    if number >= found:
        raise EdgeInfiniteError(f"--device {name}: the GPUs here are 0 to {found - 1}")
    return torch.device("cuda", number)


def new_tensors_on(device: torch.device) -> AbstractContextManager[Any]:
    """Inside the block, torch makes new tensors on a GPU; for the CPU the block changes nothing."""
    return nullcontext() if device.type == "cpu" else device


class DeviceState(State):
    """A state whose caches, memory and scores are tensors on a GPU; the host keeps its counters.

    It is for readers that measure. It can't be saved to a file or forked.

    Args:
        specs: the state tensors. All start as zeros.
        device: where they lie.
    """

    def __init__(self, specs: Sequence[TensorSpec], device: torch.device) -> None:
        self.specs = tuple(specs)
        self.arrays: dict[str, Any] = {}
        for spec in self.specs:
            shape = tuple(int(size) for size in spec.shape)
            if spec.name in _COUNTERS:
                self.arrays[spec.name] = np.zeros(shape, spec.dtype)
            else:
                dtype = getattr(torch, spec.dtype)
                self.arrays[spec.name] = torch.zeros(shape, dtype=dtype, device=device)

    def copy(self) -> State:
        """Raises: see the class."""
        raise NotImplementedError("a state on a GPU isn't copied")


class PlacedEngine(TorchEngine):
    """Computes where the model lies, which may be a GPU; the state lies there too."""

    def new_state(self) -> State:
        device = self.model.device
        return super().new_state() if device.type == "cpu" else DeviceState(self._specs, device)

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        with new_tensors_on(self.model.device):
            return super().prefill_segment(tokens, state)

    def compress_memory(self, state: State) -> None:
        with new_tensors_on(self.model.device):
            super().compress_memory(state)
