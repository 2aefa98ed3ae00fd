"""onnxruntime-genai with a model of its own builder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime_genai

from edgeinfinite.runtime_py.benchmark.case import Case
from edgeinfinite.runtime_py.benchmark.systems import Figures


class Genai:
    """See `System`. The cache is allocated for the case's length, past and present shared."""

    def __init__(self, case: Case) -> None:
        self._folder, self._precision = Path(case.model), case.settings
        self._length = case.prompt_tokens + case.new_tokens + 1
        config = onnxruntime_genai.Config(str(self._folder))
        config.overlay(
            json.dumps(
                {"model": {"decoder": {"session_options": {"intra_op_num_threads": case.threads}}}}
            )
        )
        self._model = onnxruntime_genai.Model(config)
        parameters = onnxruntime_genai.GeneratorParams(self._model)
        parameters.set_search_options(
            max_length=self._length, do_sample=False, past_present_share_buffer=True
        )
        self._generator = onnxruntime_genai.Generator(self._model, parameters)

    def read(self, tokens: Sequence[int] | np.ndarray) -> int:
        self._generator.append_tokens(np.array(tokens, dtype=np.int32))
        self._generator.generate_next_token()
        return int(self._generator.get_next_tokens()[0])

    def step(self, token: int) -> int:
        # The generator already holds `token`, because it chose it itself.
        self._generator.generate_next_token()
        return int(self._generator.get_next_tokens()[0])

    def logits(self, token: int) -> np.ndarray:
        self._generator.append_tokens(np.array([token], dtype=np.int32))
        return np.asarray(self._generator.get_logits()).reshape(-1)

    def figures(self) -> Figures:
        decoder = json.loads((self._folder / "genai_config.json").read_text())["model"]["decoder"]
        elements = (
            2
            * decoder["num_hidden_layers"]
            * decoder["num_key_value_heads"]
            * decoder["head_size"]
            * self._length
        )
        return Figures(
            quantization=self._precision,
            policy="full attention",
            state_bytes=elements * 4,
            file_bytes=sum(file.stat().st_size for file in self._folder.iterdir()),
        )


def load(case: Case) -> Genai:
    """Loads a folder that the builder made."""
    return Genai(case)
