"""llama.cpp through llama-cpp-python, flash attention on, cache in f16 or q8_0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import numpy as np

from edgeinfinite.runtime_py.benchmark.case import Case
from edgeinfinite.runtime_py.benchmark.systems import Figures

_CACHE_TYPES = {
    "f16": (llama_cpp.GGML_TYPE_F16, 2.0),
    "q8_0": (llama_cpp.GGML_TYPE_Q8_0, 34 / 32),
}
"""ggml's type and its bytes per element."""


class LlamaCpp:
    """See `System`."""

    def __init__(self, case: Case) -> None:
        cache, self._bytes_per_element = _CACHE_TYPES[case.settings.split()[-2]]
        self._file = Path(case.model)
        self._context = case.prompt_tokens + case.new_tokens + 1
        self._llama = llama_cpp.Llama(
            str(self._file),
            n_ctx=self._context,
            n_threads=case.threads,
            n_threads_batch=case.threads,
            flash_attn=True,
            type_k=cache,
            type_v=cache,
            verbose=False,
        )

    def read(self, tokens: Sequence[int] | np.ndarray) -> int:
        self._llama.eval([int(token) for token in tokens])
        return int(self._llama.sample(temp=0.0))

    def step(self, token: int) -> int:
        return self.read([token])

    def logits(self, token: int) -> np.ndarray:
        self._llama.eval([token])
        last = llama_cpp.llama_get_logits_ith(self._llama.ctx, -1)
        return np.ctypeslib.as_array(last, (self._llama.n_vocab(),)).copy()

    def figures(self) -> Figures:
        metadata = self._llama.metadata
        architecture = metadata["general.architecture"]
        heads = int(metadata[f"{architecture}.attention.head_count"])
        kv_heads = int(metadata.get(f"{architecture}.attention.head_count_kv", heads))
        head_dim = int(metadata[f"{architecture}.embedding_length"]) // heads
        layers = int(metadata[f"{architecture}.block_count"])
        elements = 2 * layers * kv_heads * head_dim * self._llama.n_ctx()
        return Figures(
            quantization=self._file.stem.rpartition(".")[2],
            policy="full attention",
            state_bytes=int(elements * self._bytes_per_element),
            file_bytes=self._file.stat().st_size,
        )


def load(case: Case) -> LlamaCpp:
    """Loads the GGUF file, memory-mapped as llama.cpp does by default."""
    return LlamaCpp(case)
