"""transformers itself: float32 weights, scaled dot product attention, a growing cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache

from edgeinfinite.runtime_py.benchmark.case import Case
from edgeinfinite.runtime_py.benchmark.systems import Figures


class Transformers:
    """See `System`."""

    def __init__(self, case: Case) -> None:
        torch.set_num_threads(case.threads)
        self._model = AutoModelForCausalLM.from_pretrained(case.model, dtype=torch.float32).eval()
        self._cache = DynamicCache()

    def read(self, tokens: Sequence[int] | np.ndarray) -> int:
        return int(self._read(tokens).argmax())

    def step(self, token: int) -> int:
        return self.read([token])

    def logits(self, token: int) -> np.ndarray:
        return self._read([token])

    @torch.inference_mode()
    def _read(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        output = self._model(
            input_ids=torch.tensor([list(tokens)]),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: np.ndarray = output.logits[0, -1].numpy()
        return logits

    def figures(self) -> Figures:
        layers: list[Any] = self._cache.layers
        return Figures(
            quantization="none",
            policy="full attention",
            state_bytes=sum(layer.keys.nbytes + layer.values.nbytes for layer in layers),
            file_bytes=sum(p.nbytes for p in self._model.parameters()),
        )


def load(case: Case) -> Transformers:
    """Loads a folder of the checkpoint."""
    return Transformers(case)
