"""What loading a session asks of an engine, from a manifest alone: nothing is computed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from edgeinfinite.artifact.manifest import Manifest, fingerprint, model_digest, scales_digest
from edgeinfinite.runtime_py.engines.base import Reader
from edgeinfinite.runtime_py.session.state import State


class StateOnly:
    """An `Engine` whose artifact has no graphs: a session can be opened and looked at."""

    name = "state"

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self.geometry = manifest.geometry
        self.vocabulary = manifest.backbone.vocabulary
        self.reads_memory = manifest.gate is not None
        self.chunk_length = 1

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._manifest)

    @property
    def model_digest(self) -> str:
        return model_digest(self._manifest)

    @property
    def cache_scales(self) -> str:
        return scales_digest(self._manifest)

    def new_state(self) -> State:
        return State(self._manifest.state)

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        raise NotImplementedError

    def reading(self, tokens: int) -> AbstractContextManager[Reader | None]:
        return nullcontext()

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        raise NotImplementedError

    def compress_memory(self, state: State) -> None:
        raise NotImplementedError
