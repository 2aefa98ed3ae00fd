"""What `exact_and_fixed.py` measures: each system behind `skip`, `logits`, `save`, `state_bytes`.

A system is imported when it is opened, so that no process holds another one's libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

_LAYERS = 3
"""Layers of `part`; of the last one only one token's attention is computed."""

_FILLED_AT_ONCE = 4096
"""Tokens of random keys and values that are written at a time."""


class Reader(Protocol):
    """A system with a text.

    Attributes:
        logits: `[V]` after the newest token.
    """

    logits: np.ndarray

    @property
    def state_bytes(self) -> int:
        """Of the cache, or the state."""

    def skip(self, tokens: Sequence[int]) -> None:
        """Reads tokens."""

    def save(self) -> Callable[[], None]:
        """Calling the result forgets what was read since."""


def open_reader(system: str, model: str, *, tokens: int, threads: int) -> Reader:
    """Opens a system for at most so many tokens.

    Args:
        system: a name of `exact_and_fixed_report.NAMES`.
        model: an artifact, a checkpoint, or for `llama.cpp` a GGUF file.
    """
    if system == "llama.cpp":
        return _LlamaReader(model, tokens, threads)
    if system in ("fixed", "streaming"):
        from edgeinfinite.runtime_py.engines import load_engine
        from edgeinfinite.runtime_py.session.session import Session

        return _SessionReader(Session(load_engine(Path(model), threads=threads)))
    from edgeinfinite.export.exact import open_exact

    session: Any = open_exact(model, threads=threads).session
    if system != "mom":
        session._check_length = lambda more: None
    if system in ("part", "filled"):
        return PartReader(session, reads=system == "part")
    return _SessionReader(session)


class _SessionReader:
    """A session of an artifact, or of a checkpoint read exactly."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.logits = np.empty(0, np.float32)

    @property
    def state_bytes(self) -> int:
        return int(self._session.state_bytes)

    def skip(self, tokens: Sequence[int]) -> None:
        self.logits = self._session.append(tokens)

    def save(self) -> Callable[[], None]:
        go_back, logits = self._session.mark(), self.logits

        def restore() -> None:
            go_back()
            self.logits = logits

        return restore


class PartReader(_SessionReader):
    """Reads a prompt with three layers, and goes on with all of them and a made-up cache.

    Args:
        session: of the whole model.
        reads: whether to read the prompt at all.
    """

    def __init__(self, session: Any, *, reads: bool) -> None:
        super().__init__(session)
        self._reads = reads
        self.logits = np.zeros(session.engine.vocabulary, np.float32)

    def skip(self, tokens: Sequence[int]) -> None:
        if self._session.tokens_read:
            super().skip(tokens)
        elif self._reads:
            self._read_with_part(tokens)

    def _read_with_part(self, tokens: Sequence[int]) -> None:
        model = self._session.engine.model
        decoder, config = model.get_decoder(), model.config
        layers, count = decoder.layers, config.num_hidden_layers
        decoder.layers, config.num_hidden_layers = layers[:_LAYERS], _LAYERS
        try:
            part = type(self._session)(self._session.engine)
            part._check_length = lambda more: None
            self.logits = part.append(tokens)
            part.close()
        finally:
            decoder.layers, config.num_hidden_layers = layers, count

    def fill(self, tokens: int) -> None:
        """Makes the cache as long as if all layers had read so many tokens."""
        import torch

        cache, facts = self._session.reader.cache, self._session.engine.facts
        shape = (1, facts.kv_heads, _FILLED_AT_ONCE, facts.head_dim)
        keys, values = torch.randn(2, *shape)
        cache.reserve(tokens, keys)
        for layer in range(len(cache.layers)):
            for start in range(0, tokens, _FILLED_AT_ONCE):
                count = min(_FILLED_AT_ONCE, tokens - start)
                cache.update(keys[:, :, :count], values[:, :, :count], layer)
        self._session.tokens_read = tokens


class _LlamaReader:
    """llama.cpp; its cache is cut back, as its own server does."""

    def __init__(self, model: str, tokens: int, threads: int) -> None:
        from edgeinfinite.runtime_py.benchmark.case import Case
        from edgeinfinite.runtime_py.benchmark.systems.llama_cpp_peer import LlamaCpp

        settings = "flash attention, swa_full off, q8_0 cache"
        self._system = LlamaCpp(Case("llama.cpp", model, settings, tokens, 0, threads, 0))
        self.logits = np.empty(0, np.float32)

    @property
    def state_bytes(self) -> int:
        return int(self._system.figures().state_bytes or 0)

    def skip(self, tokens: Sequence[int]) -> None:
        if len(tokens) > 1:
            self._system._llama.eval([int(token) for token in tokens[:-1]])
        self.logits = self._system.logits(int(tokens[-1]))

    def save(self) -> Callable[[], None]:
        llama, logits = self._system._llama, self.logits
        count = llama.n_tokens

        def restore() -> None:
            llama.n_tokens = count  # the next `eval` drops what comes after
            self.logits = logits

        return restore
