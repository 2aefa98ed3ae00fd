"""A transformers `Cache` whose keys and values lie in files; few layers at a time are in memory.

Letters: B batch, K KV heads, T new tokens, n tokens in the cache, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from transformers import Cache, DynamicCache, PretrainedConfig, PreTrainedModel
from transformers.cache_utils import (
    CacheLayerMixin,
    DynamicLayer,
    DynamicSlidingWindowLayer,
)

from edgeinfinite.models.mom.spill_file import SpillFile, default_folder


class DiskLayer(CacheLayerMixin):
    """One layer's keys and values in a file, token by token: `[n, 2, B, K, D]`.

    In that order a new token is appended at the end, and nothing moves when the file grows.

    Args:
        folder: where the file is created, at the first token.
    """

    is_sliding = False
    is_croppable = True

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._file: SpillFile | None = None
        self._rows: torch.Tensor | None = None
        self._token_bytes = 0
        self.length = 0

    def reserve(self, tokens: int, like: torch.Tensor) -> None:
        """Allocates the file for `tokens` tokens in all, whose keys are `[B, K, any, D]` as `like`.

        Raises:
            EdgeInfiniteError: the disk is full.
        """
        if not self.is_initialized:
            self.lazy_initialization(like, like)
        self._grow(tokens)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Creates the file for tensors of this shape `[B, K, T, D]` and dtype."""
        batch, heads, _, dim = key_states.shape
        self.dtype, self.device = key_states.dtype, key_states.device
        self._shape = (2, batch, heads, dim)
        self._token_bytes = 2 * batch * heads * dim * key_states.element_size()
        self._file = SpillFile(self._folder)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Appends T tokens `[B, K, T, D]`; returns all, `[B, K, n, D]`, as views of the file.

        Raises:
            EdgeInfiniteError: the disk is full. The layer is what it was.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        rows = self._grow(end)
        for part, states in enumerate((key_states, value_states)):
            rows[self.length : end, part].copy_(states.permute(2, 0, 1, 3))
        self.length = end
        return rows[:end, 0].permute(1, 2, 0, 3), rows[:end, 1].permute(1, 2, 0, 3)

    def _grow(self, tokens: int) -> torch.Tensor:
        """The file as a tensor `[>= tokens, 2, B, K, D]`."""
        assert self._file is not None
        if self._rows is None or self._rows.shape[0] < tokens:
            if self._rows is not None:  # decoding on: an eighth more, so that it is seldom
                tokens = max(tokens, self._rows.shape[0] * 9 // 8)
            self._file.reserve(tokens * self._token_bytes)
            assert self._file.mapped is not None
            count = self._file.size // self._token_bytes
            elements = count * self._token_bytes // self.dtype.itemsize
            flat = torch.frombuffer(self._file.mapped, dtype=self.dtype, count=elements)
            self._rows = flat.view(count, *self._shape)
        return self._rows

    def shrink(self) -> None:
        """Gives back what the file has beyond its tokens."""
        if self._file is not None:
            self._rows = None
            self._file.shrink(self.length * self._token_bytes)

    def prefetch(self) -> None:
        """Brings the tokens into this process's memory before an attention needs them."""
        if self._file is not None:
            self._file.map_in(self.length * self._token_bytes)

    def offload(self) -> None:
        """Takes the layer out of this process's memory."""
        if self._file is not None:
            self._file.release()

    def close(self) -> None:
        """Gives the disk's space back."""
        self._rows = None
        if self._file is not None:
            self._file.close()
        self._file, self.is_initialized, self.length = None, False, 0

    def reset(self) -> None:
        """Forgets all tokens; the file is kept for the next ones."""
        self.length = 0

    def crop(self, tokens_to_remove: int) -> None:
        """Forgets the newest `-tokens_to_remove` tokens."""
        self.length = max(0, self.length - abs(tokens_to_remove))

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length of the cache with the new tokens, and its offset."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """n."""
        return self.length

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    @property
    def nbytes(self) -> int:
        """Bytes of the tokens in the file."""
        return self.length * self._token_bytes


class DiskCache(Cache):
    """Keys and values of full-attention layers in files, of sliding layers in memory.

    While a layer attends, a thread takes the one before out of this process's memory and brings the
    next one in. Sliding layers hold their own window, as transformers' caches do.

    Args:
        config: the model's.
        folder: for the files; see `spill_file.default_folder`.
    """

    def __init__(self, config: PretrainedConfig, folder: Path | None = None) -> None:
        place = default_folder() if folder is None else folder
        layers = [
            DiskLayer(place) if type(layer) is DynamicLayer else layer
            for layer in DynamicCache(config=config).layers
        ]
        super().__init__(layers=layers)
        self._disk = {i: layer for i, layer in enumerate(layers) if isinstance(layer, DiskLayer)}
        self._windows = [layer for layer in layers if isinstance(layer, DynamicSlidingWindowLayer)]
        self._mapped: int | None = None
        self._thread = ThreadPoolExecutor(1, "edgeinfinite-offload")
        self._turning: Future[None] | None = None

    def reserve(self, tokens: int, like: torch.Tensor) -> None:
        """Has every file allocated before the first token is read, which takes long.

        Args:
            tokens: how many in all.
            like: keys `[B, K, any, D]` of the model's dtype.

        Raises:
            EdgeInfiniteError: the disk is full. What was allocated is given back.
        """
        try:
            for layer in self._disk.values():
                layer.reserve(tokens, like)
        except BaseException:
            if self._turning is not None:
                self._turning.result()
            for layer in self._disk.values():
                layer.shrink()
            raise

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Cache.update`; `[B, K, T, D]` in, `[B, K, n, D]` out."""
        if layer_idx != self._mapped and layer_idx in self._disk:
            self._turn_to(layer_idx)
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)

    def _turn_to(self, layer_idx: int) -> None:
        if self._turning is not None:
            self._turning.result()  # so no more than three layers are ever in memory
        before, self._mapped = self._mapped, layer_idx
        order = list(self._disk)
        following = order[(order.index(layer_idx) + 1) % len(order)]

        def turn() -> None:
            if before is not None:
                self._disk[before].offload()
            if following != layer_idx:
                self._disk[following].prefetch()

        self._turning = self._thread.submit(turn)

    def mark(self) -> Callable[[], None]:
        """Remembers the cache as it is; calling the result brings it back after a failed call."""
        lengths = {index: layer.length for index, layer in self._disk.items()}
        windows = [dict(vars(layer)) for layer in self._windows]

        def restore() -> None:
            for index, length in lengths.items():
                self._disk[index].length = length
            for layer, window in zip(self._windows, windows, strict=True):
                vars(layer).update(window)  # its tensors are replaced, never changed

        return restore

    @property
    def can_cut(self) -> bool:
        """Whether `cut` works for any number of tokens: not where layers hold windows alone."""
        return not self._windows

    def cut(self, tokens: int) -> None:
        """Forgets all but the first `tokens` tokens, or none if there are fewer."""
        assert self.can_cut or tokens >= self.get_seq_length()
        for layer in self._disk.values():
            layer.length = min(layer.length, tokens)

    @property
    def disk_bytes(self) -> int:
        """Bytes of keys and values in files."""
        return sum(layer.nbytes for layer in self._disk.values())

    def close(self) -> None:
        """Gives the disk's space back."""
        self._thread.shutdown()
        for layer in self._disk.values():
            layer.close()


def offloaded_cache(model: PreTrainedModel, folder: Path | None = None) -> Cache:
    """The offloaded cache that fits the model's device.

    On a GPU that is transformers' own, which moves layers to the host's memory; elsewhere
    `DiskCache`.

    Args:
        model: a causal LM.
        folder: for the files of `DiskCache`.
    """
    if model.device.type == "cpu":
        return DiskCache(model.config, folder)
    return DynamicCache(config=model.config, offloading=True, offload_only_non_sliding=True)
