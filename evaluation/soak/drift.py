"""How far the memory's float32 sums drift from the same sums in float64.

M and z only ever grow by what a compression folds in (Eq. 4 and 5 of arXiv 2503.22196), so every
fold is computed a second time into an empty memory and added up in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.artifact.tensors import SUMS
from edgeinfinite.files import replacing
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.state import State


class SummingEngine:
    """An engine that keeps the sums in float64 beside those of the state.

    Args:
        engine: with a memory.

    Attributes:
        sums: M and z by name, float64; empty before anything is folded in, None if they are lost.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.sums: dict[str, np.ndarray] | None = {}
        self._paused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def compress_memory(self, state: State) -> None:
        """See `Engine.compress_memory`."""
        if self.sums is not None and not self._paused:
            self.sums = self._added(self.sums, state.copy())
        self._engine.compress_memory(state)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside the block, what is folded in is another text's."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def _added(self, sums: dict[str, np.ndarray], state: State) -> dict[str, np.ndarray]:
        """The sums with what a compression folds in.

        Args:
            sums: before it.
            state: a copy before it, which is changed.
        """
        for name in SUMS:
            state.arrays[name][...] = 0
        self._engine.compress_memory(state)
        return {name: sums.get(name, 0.0) + state.arrays[name].astype(np.float64) for name in SUMS}

    def drift(self, state: State) -> float | None:
        """The largest difference to the state's sums, relative to the largest sum of its kind; None
        if the sums are lost.
        """
        if self.sums is None:
            return None
        differences = (
            float(np.abs(state.arrays[name] - exact).max() / max(np.abs(exact).max(), 1e-30))
            for name, exact in self.sums.items()
        )
        return max(differences, default=0.0)

    def save(self, path: Path, tokens: int) -> None:
        """Writes the sums after so many tokens, if they aren't lost."""
        if self.sums is None:
            return
        arrays: dict[str, Any] = {"tokens": np.array(tokens), **self.sums}
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **arrays)


def sums_at(path: Path, tokens: int) -> dict[str, np.ndarray] | None:
    """The sums that were saved after so many tokens; None if there are none."""
    if not path.exists():
        return None
    with np.load(path) as saved:
        found = {name: saved[name] for name in saved}
    return found if int(found.pop("tokens")) == tokens else None
