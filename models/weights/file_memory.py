"""Weights in files in place of memory: what isn't in use takes none.

The files have no name and are mapped (`mom/spill_file.py`), so weights stay tensors that can be
read and written. The system keeps their pages as long as memory isn't short.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.mini_sequence import decoder_layers
from edgeinfinite.models.mom.spill_file import SpillFile, default_folder

_SMALL = 1 << 20
"""Bytes; what is smaller stays in memory."""


class FileMemory:
    """Gives out arrays that lie in files. The files are gone when it and all arrays are.

    Args:
        folder: for the files; None: `$TMPDIR`, or /var/tmp.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_folder()
        self._maps: list[mmap.mmap] = []

    def zeros(self, *shape: int) -> torch.Tensor:
        """As `torch.zeros`, float32.

        Raises:
            EdgeInfiniteError: the disk is full, or the folder can't be written.
        """
        count = math.prod(shape)
        if 4 * count < _SMALL:
            return torch.zeros(shape)
        file = SpillFile(self._folder, "file of weights", "set TMPDIR to another folder")
        try:
            file.reserve(4 * count)
            assert file.mapped is not None
            self.adopt(file.mapped)
            return torch.frombuffer(file.mapped, dtype=torch.float32, count=count).view(shape)
        finally:
            file.close()  # the map stays

    def adopt(self, mapped: mmap.mmap) -> None:
        """Releases the pages of somebody else's map as well."""
        self._maps.append(mapped)

    def release(self) -> None:
        """Takes all arrays out of this process's memory, until they are used again."""
        if sys.platform == "win32":  # which has no such advice
            return
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def move(self, model: nn.Module) -> None:
        """Moves a model's parameters here, one by one. Tied ones stay tied."""
        for parameter in model.parameters():
            parameter.data = self.zeros(*parameter.shape).copy_(parameter.detach())
            self.release()

    @contextmanager
    def one_layer_at_a_time(self, model: PreTrainedModel) -> Iterator[None]:
        """While it is open, the arrays of one decoder layer are in memory, or the LM head's.

        A backward pass that computes its layers again keeps to it, too.
        """
        used: nn.Module | None = None

        def begin(part: nn.Module) -> Callable[..., None]:
            def before(_: nn.Module, __: Any) -> None:
                nonlocal used
                if used is not part:
                    self.release()
                    used = part

            return before

        self.release()
        with ExitStack() as stack:
            stack.callback(self.release)
            for layer in decoder_layers(model):
                for child in layer.children():
                    stack.callback(child.register_forward_pre_hook(begin(layer)).remove)
            head = model.get_output_embeddings()
            if isinstance(head, nn.Module):
                stack.callback(head.register_forward_pre_hook(begin(head)).remove)
            yield
