"""The interface of a back end. The table in `artifact.backends` names each back end's package."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from transformers import PreTrainedModel

from edgeinfinite.artifact.backends import backend_entry
from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import Manifest, QuantizationInfo
from edgeinfinite.artifact.tensors import GraphSpec, TensorSpec
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.recipes import Recipe
from edgeinfinite.models.architecture import Architecture

Progress = Callable[[str, float], None]
"""Called with the name of the current step and the share that is done, 0 to 1."""


@dataclass(frozen=True)
class ExportedGraphs:
    """What a back end wrote; the manifest is made of it.

    Args:
        graphs: signatures by name. `compress_memory` exists under policy `carry`, and under
            `reencode` only with a gate: without one there is nothing to compute.
        state: the state tensors that the host owns.
        quantization: each weight's format by name, and the weights that weren't quantized.
        details: the back end's own report, for people.
    """

    graphs: dict[str, GraphSpec]
    state: tuple[TensorSpec, ...]
    quantization: QuantizationInfo
    details: dict[str, Any]


class Backend(Protocol):
    """Turns an attached model into files."""

    name: str
    cache_types: tuple[str, ...]
    """What `--cache-type` may name, see `EdgeInfiniteConfig`."""

    tools: tuple[str, ...]
    """Packages whose versions go into the manifest, beside torch and transformers."""

    def check_architecture(self, facts: Architecture, geometry: Geometry) -> None:
        """Refuses what this back end can't compute, before any long work.

        Args:
            facts: the backbone's architecture.
            geometry: the cache's geometry.

        Raises:
            EdgeInfiniteError: names the architecture, what isn't supported, and what to do.
        """
        ...

    def export_graphs(
        self, model: PreTrainedModel, recipe: Recipe, folder: Path, target: str, progress: Progress
    ) -> ExportedGraphs:
        """Writes the graphs into `folder`.

        Args:
            model: after `models.attach.attach`; unchanged afterwards.
            recipe: decides which weights to quantize.
            folder: an empty folder.
            target: one of the back end's targets in `artifact.backends`.
            progress: see `Progress`.

        Raises:
            EdgeInfiniteError: see `check_architecture`.
        """
        ...

    def weights_bytes(self, model: PreTrainedModel, recipe: Recipe) -> int:
        """Bytes of all weights as `export_graphs` would store them.

        Args:
            model: after `attach`; not changed.
            recipe: as given to `export_graphs`.
        """
        ...

    def check_signatures(self, folder: Path, manifest: Manifest) -> list[Check]:
        """`io:GRAPH` for each graph: whether its inputs and outputs are those of the manifest."""
        ...

    def quantized_reference(self, model: PreTrainedModel, recipe: Recipe) -> PreTrainedModel:
        """A PyTorch model with the artifact's weights, dequantized.

        Comparing with it separates errors of the graph from the loss of quantization.

        Args:
            model: after `attach`; not changed. The result may share its unquantized weights.
            recipe: as given to `export_graphs`.
        """
        ...


def backend_named(name: str) -> Backend:
    """Imports a back end.

    Raises:
        EdgeInfiniteError: no such back end, or its packages aren't installed (with the command).
    """
    entry = backend_entry(name)
    try:
        return importlib.import_module(entry.exporter).BACKEND
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("edgeinfinite"):
            raise
        raise EdgeInfiniteError(
            f"the back end {name} needs the package {error.name}; install it with: "
            f"{entry.export_install}"
        ) from error
