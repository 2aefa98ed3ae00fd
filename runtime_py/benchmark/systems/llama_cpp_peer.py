"""llama.cpp through llama-cpp-python, with the settings that its own programs take.

The library's defaults differ: it keeps the whole text in layers with sliding windows
(`swa_full=True`), reads 512 tokens at a time, not 2,048, and has flash attention off.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import numpy as np

from edgeinfinite.runtime_py.benchmark.case import Case
from edgeinfinite.runtime_py.benchmark.systems import Figures

_CACHE_TYPES = {
    "f16": llama_cpp.GGML_TYPE_F16,
    "q8_0": llama_cpp.GGML_TYPE_Q8_0,
}
_BATCH = 2048
"""Tokens that llama-cli and llama-server hand to the library at once."""


class LlamaCpp:
    """See `System`."""

    def __init__(self, case: Case) -> None:
        cache = _CACHE_TYPES[case.settings.split()[-2]]
        self._file = Path(case.model)
        self._context = case.prompt_tokens + case.new_tokens + 1
        self._llama = llama_cpp.Llama(
            str(self._file),
            n_ctx=self._context,
            n_threads=case.threads,
            n_threads_batch=case.threads,
            n_batch=_BATCH,
            flash_attn=True,
            swa_full=False,
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
        return Figures(
            quantization=self._file.stem.rpartition(".")[2],
            policy="full attention",
            # The cells in use, which the run has filled.
            state_bytes=int(llama_cpp.llama_state_seq_get_size(self._llama.ctx, 0)),
            file_bytes=self._file.stat().st_size,
        )


def load(case: Case) -> LlamaCpp:
    """Loads the GGUF file, memory-mapped as llama.cpp does by default."""
    return LlamaCpp(case)
