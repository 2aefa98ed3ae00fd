"""Engines: what computes the graphs. `load_engine` picks the one the artifact was exported for."""

from __future__ import annotations

from pathlib import Path

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Engine

__all__ = ["Engine", "load_engine"]


def load_engine(
    folder: Path | str, *, threads: int | None = None, every_graph: bool = False
) -> Engine:
    """Opens an artifact with the engine of its back end.

    Args:
        folder: the artifact.
        threads: CPU threads, None for the engine's default.
        every_graph: use each graph of the artifact, also where another does its work as fast with
            less memory; for checking them.

    Raises:
        EdgeInfiniteError: the artifact is damaged, or its back end isn't installed.
    """
    folder = Path(folder)
    manifest = load_manifest(folder)
    if manifest.backend == "onnx":
        from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine

        return OnnxEngine(folder, manifest, threads=threads, own_decode=every_graph)
    if manifest.backend == "executorch":
        from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine

        return ExecuTorchEngine(folder, manifest, threads=threads)
    raise EdgeInfiniteError(
        f"{folder} was made for the back end {manifest.backend!r}, which this version doesn't know;"
        " update edgeinfinite"
    )
