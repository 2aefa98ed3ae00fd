"""How each method reads a prompt and decodes. Letters: T tokens of a call, V vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch
from transformers import Cache, DynamicCache, PreTrainedModel

from edgeinfinite.evaluation.exact_cost.case import MemoryCase
from edgeinfinite.models.mini_sequence import MiniSequence, apply_mini_sequence
from edgeinfinite.models.mom.disk_cache import DiskCache, offloaded_cache
from edgeinfinite.models.mom.reader import MomReader


class ExactMethod(Protocol):
    """Reads one text exactly."""

    @property
    def disk_bytes(self) -> int:
        """Bytes of keys and values in files."""
        ...

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Reads `[1, T]`; logits `[V]` of the last token."""
        ...


def method_of(case: MemoryCase, model: PreTrainedModel) -> ExactMethod:
    """The method of a case, with an empty cache; on a GPU all but `mom` work too."""
    folder = Path(case.offload_folder) if case.offload_folder else None
    if case.method == "mom":
        return _Mom(model, case.chunk, folder)
    offloaded = case.method in ("offload", "mom-paper")
    cache = offloaded_cache(model, folder) if offloaded else DynamicCache(config=model.config)
    mini_sequences = case.method in ("mini-sequence", "mom-paper")
    return _Transformers(
        model,
        cache,
        chunk=case.chunk if case.method == "chunked-prefill" else None,
        options={} if case.method == "standard" or mini_sequences else {"logits_to_keep": 1},
        applied=apply_mini_sequence(model, case.chunk) if mini_sequences else None,
    )


class _Transformers:
    def __init__(
        self,
        model: PreTrainedModel,
        cache: Cache,
        *,
        chunk: int | None,
        options: dict[str, Any],
        applied: MiniSequence | None,
    ) -> None:
        self._model, self._cache = model, cache
        self._chunk, self._options = chunk, options
        self.applied = applied

    @property
    def disk_bytes(self) -> int:
        return self._cache.disk_bytes if isinstance(self._cache, DiskCache) else 0

    @torch.inference_mode()
    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = torch.empty(0)
        for part in tokens.split(self._chunk or tokens.shape[1], 1):
            del logits
            output = self._model(
                input_ids=part, past_key_values=self._cache, use_cache=True, **self._options
            )
            logits = output.logits[0, -1].clone()
            del output
        return logits


class _Mom:
    def __init__(self, model: PreTrainedModel, chunk: int, folder: Path | None) -> None:
        self._reader = MomReader(model, chunk=chunk, folder=folder)

    @property
    def disk_bytes(self) -> int:
        return self._reader.cache.disk_bytes

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        return self._reader.read(tokens)[0, -1]
