"""Reads a text of any length with exact attention, in the memory of one layer's cache.

Letters: T tokens of a call, V vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import torch
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import check_all_attend
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.mom.attention import (
    EXACT_ATTENTION,
    LAST_LAYER_ARGUMENT,
    PROMPT_ARGUMENT,
)
from edgeinfinite.models.mom.disk_cache import DiskCache
from edgeinfinite.models.mom.layer_chunks import LayerChunks

CHUNK = 512
"""Tokens that a layer reads at a time; see `attention._QUERIES`."""

_one_at_a_time = threading.Lock()
"""A reading changes the model's layers and its attention while it runs."""


class MomReader:
    """The model over one text, with its own cache on disk.

    Several readers may share a model, also in several threads: they read one after the other.

    Args:
        model: a supported causal LM on the CPU, float32 or bfloat16.
        chunk: tokens that a layer reads at a time.
        folder: for the cache's files; None takes `spill_file.default_folder`.

    Raises:
        EdgeInfiniteError: `chunk` is below 1, or the model isn't supported or not on the CPU.
    """

    def __init__(
        self, model: PreTrainedModel, *, chunk: int = CHUNK, folder: Path | None = None
    ) -> None:
        if chunk < 1:
            raise EdgeInfiniteError(f"chunk is {chunk}; give at least 1 token")
        if model.device.type != "cpu":
            raise EdgeInfiniteError(
                "the cache on disk is for the CPU; on a GPU use apply_mini_sequence with "
                "DynamicCache(config, offloading=True)"
            )
        with _one_at_a_time:
            self._facts = check_all_attend(model, "exact attention in little memory")
        self.model = model
        self.cache = DiskCache(model.config, folder)
        self._chunk = chunk

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return int(self.cache.get_seq_length())

    @torch.inference_mode()
    def read(
        self,
        tokens: torch.Tensor,
        *,
        keep: int = 1,
        before_chunk: Callable[[int], None] | None = None,
    ) -> torch.Tensor:
        """Reads the next T tokens.

        Args:
            tokens: `[1, T]` int64.
            keep: logits of how many last tokens; more than one in calls of one chunk only.
            before_chunk: see `LayerChunks`.

        Returns:
            Logits `[1, keep, V]`.

        Raises:
            EdgeInfiniteError: the disk is full. The reader is where it was, as after any error.
        """
        if keep > 1 and tokens.shape[1] > self._chunk:
            raise EdgeInfiniteError(f"{keep} logits are asked for, of more than one chunk")
        restore, layers = self.cache.mark(), self.cache.layers
        heads, dim = self._facts.kv_heads, self._facts.head_dim
        like = torch.empty(1, heads, 0, dim, dtype=self.model.dtype)
        self.cache.reserve(self.length + tokens.shape[1], like)
        arguments = {PROMPT_ARGUMENT: tokens.shape[1]}
        if keep == 1:
            arguments[LAST_LAYER_ARGUMENT] = len(layers) - 1
        try:
            with _one_at_a_time, ExitStack() as stack:
                stack.enter_context(attention_implementation(self.model, EXACT_ATTENTION))
                if tokens.shape[1] > 1:  # decoding, the model itself has nothing to cut
                    chunks = stack.enter_context(LayerChunks(self.model, self._chunk))
                    chunks.keep, chunks.before_chunk = keep, before_chunk
                output = self.model(
                    input_ids=tokens, past_key_values=self.cache, use_cache=True, **arguments
                )
        except BaseException:
            restore()
            raise
        return output.logits

    def close(self) -> None:
        """Gives the disk's space back."""
        self.cache.close()

    def __enter__(self) -> MomReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
