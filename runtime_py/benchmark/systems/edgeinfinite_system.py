"""Our own artifacts, on whichever engine they were exported for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.runtime_py.benchmark.case import Case
from edgeinfinite.runtime_py.benchmark.systems import Figures
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session


class EdgeInfiniteSystem:
    """See `System`."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._folder = folder
        self._session = Session(load_engine(folder, threads=threads))

    def read(self, tokens: Sequence[int] | np.ndarray) -> int:
        return int(self._session.append(tokens).argmax())

    def step(self, token: int) -> int:
        return int(self.logits(token).argmax())

    def logits(self, token: int) -> np.ndarray:
        return self._session.append([token])

    def figures(self) -> Figures:
        manifest = load_manifest(self._folder, check_files=False)
        return Figures(
            quantization=manifest.quantization.recipe,
            policy=manifest.geometry.policy,
            state_bytes=self._session.state_bytes,
            file_bytes=sum(entry.size for entry in manifest.files.values()),
        )


def load(case: Case) -> EdgeInfiniteSystem:
    """Opens the artifact."""
    return EdgeInfiniteSystem(Path(case.model), case.threads)
