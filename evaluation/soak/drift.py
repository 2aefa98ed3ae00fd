"""How far the memory's float32 sums drift from the same sums in float64.

M and z only ever grow by what a compression folds in (Eq. 4 and 5 of arXiv 2503.22196), so every
fold is computed a second time into an empty memory and added up in float64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.files import replacing
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.state import State

SUMS = ("memory", "memory_norm")
"""M and z, as the state names them."""


class SummingEngine:
    """An engine that keeps the sums in float64 beside those of the state.

    Args:
        engine: with a memory.
        sums: of a run that goes on; None for a new text.
    """

    def __init__(self, engine: Engine, sums: dict[str, np.ndarray] | None = None) -> None:
        self._engine = engine
        self.sums = sums
        self.active = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def compress_memory(self, state: State) -> None:
        """See `Engine.compress_memory`."""
        if self.active:
            self._add(state.copy())
        self._engine.compress_memory(state)

    def _add(self, state: State) -> None:
        """Adds what a compression folds in.

        Args:
            state: a copy before the compression, which is changed.
        """
        for name in SUMS:
            state.arrays[name][...] = 0
        self._engine.compress_memory(state)
        parts = {name: state.arrays[name].astype(np.float64) for name in SUMS}
        self.sums = {
            name: part if self.sums is None else self.sums[name] + part
            for name, part in parts.items()
        }

    def drift(self, state: State) -> float:
        """The largest difference to the state's sums, relative to the largest sum of its kind."""
        if self.sums is None:
            return 0.0
        return max(
            float(np.abs(state.arrays[name] - exact).max() / max(np.abs(exact).max(), 1e-30))
            for name, exact in self.sums.items()
        )

    def save(self, path: Path, tokens: int) -> None:
        """Writes the sums after so many tokens."""
        arrays: dict[str, Any] = {"tokens": np.array(tokens), **(self.sums or {})}
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **arrays)


def sums_at(path: Path, tokens: int) -> dict[str, np.ndarray] | None:
    """The sums that were saved after so many tokens; None if there are none."""
    if not path.exists():
        return None
    with np.load(path) as saved:
        sums = {name: saved[name] for name in SUMS if name in saved}
        return sums if int(saved["tokens"]) == tokens and sums else None
