"""Engines compute an artifact's graphs. `load_engine` opens the engine of its back end."""

from __future__ import annotations

import importlib
from pathlib import Path

from edgeinfinite.artifact.backends import backend_entry
from edgeinfinite.artifact.manifest import Manifest, load_manifest
from edgeinfinite.runtime_py.engines.base import Engine

__all__ = ["Engine", "load_engine"]


def load_engine(
    folder: Path | str,
    *,
    manifest: Manifest | None = None,
    threads: int | None = None,
    every_graph: bool = False,
    emulate: bool = False,
) -> Engine:
    """Opens an artifact with the engine of its back end.

    Args:
        folder: the artifact.
        manifest: what `load_manifest` gave, which checked the files; None checks them now.
        threads: CPU threads, None for the engine's default.
        every_graph: run every graph of the artifact, so that all of them can be checked. By
            default an engine leaves out a graph that another one replaces with less memory.
        emulate: run what was compiled for a phone's NPU in its emulator, which is slow.

    Raises:
        EdgeInfiniteError: the artifact is damaged, its back end isn't installed, or there is
            nothing to emulate.
    """
    folder = Path(folder)
    manifest = manifest or load_manifest(folder)
    engine = importlib.import_module(backend_entry(manifest.backend).engine).ENGINE
    options = {"emulate": True} if emulate else {}
    opened: Engine = engine.open(
        folder, manifest, threads=threads, every_graph=every_graph, **options
    )
    return opened
