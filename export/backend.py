"""The interface of a back end. The table in `artifact.backends` names each back end's package."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from msgspec import UNSET, UnsetType
from transformers import PreTrainedModel

from edgeinfinite.artifact.backends import backend_entry
from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import Manifest, NpuInfo, QuantizationInfo
from edgeinfinite.artifact.socs import soc_named
from edgeinfinite.artifact.tensors import GraphSpec, TensorSpec
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.recipes import Recipe, WeightFormat
from edgeinfinite.export.weight_menu import WeightMenu
from edgeinfinite.models.architecture import Architecture
from edgeinfinite.models.weights.grouped_weight import GroupedWeight
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

Progress = Callable[[str, float], None]
"""Called with the name of the current step and the share that is done, 0 to 1."""

ExactParity = Callable[[Path, Manifest, TorchEngine, Sequence[State], Iterator[int]], list[Check]]
"""See `Backend.exact_parity`."""

Integers = Mapping[str, GroupedWeight]
"""Weights whose integers are chosen already, by the names of `model.named_parameters()`."""


@dataclass(frozen=True)
class WeightRequest:
    """A model, and what its weights are to become.

    Args:
        model: after `models.attach.attach`; it isn't changed.
        recipe: decides which weights to quantize.
        integers: of what the recipe quantizes, weights to be taken over as they are, as far as the
            back end can hold them; never with fewer bits.
    """

    model: PreTrainedModel
    recipe: Recipe
    integers: Integers | None = None


@dataclass(frozen=True)
class ExportedGraphs:
    """What a back end wrote; the manifest is made of it.

    Args:
        graphs: signatures by name. `compress_memory` exists under policy `carry`, and under
            `reencode` only with a gate: without one there is nothing to compute.
        state: the state tensors that the host owns.
        quantization: each weight's format by name, and the weights that weren't quantized.
        details: the back end's own report, for people.
        npu: what was compiled for which chip, for an accelerator's target.
    """

    graphs: dict[str, GraphSpec]
    state: tuple[TensorSpec, ...]
    quantization: QuantizationInfo
    details: dict[str, Any]
    npu: NpuInfo | UnsetType = UNSET


class Backend(Protocol):
    """Turns an attached model into files."""

    name: str
    cache_types: tuple[str, ...]
    """What `--cache-type` may name, see `EdgeInfiniteConfig`."""

    menu: WeightMenu
    """What it can do with weights."""

    graph_bytes: int
    """Of the graphs and the manifest without weights, for each layer, rounded up."""

    keeps_angles: bool
    """Whether its graphs for tokens hold tables of RoPE's angles, those that compression needs."""

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
        self, request: WeightRequest, folder: Path, target: str, progress: Progress
    ) -> ExportedGraphs:
        """Writes the graphs into `folder`.

        Args:
            request: the model and its weights.
            folder: an empty folder.
            target: one of the back end's targets in `artifact.backends`.
            progress: see `Progress`.

        Raises:
            EdgeInfiniteError: see `check_architecture`.
        """
        ...

    def weights_bytes(self, request: WeightRequest) -> int:
        """Bytes of all weights as `export_graphs` would store them, without rounding them.

        Of integers the codes aren't needed.
        """
        ...

    def rounded(
        self, weight: torch.Tensor, form: WeightFormat, *, embedding: bool
    ) -> tuple[torch.Tensor, int]:
        """A weight `[O, I]` as the artifact would compute with it, and the bytes it would take."""
        ...

    def held(self, weight: GroupedWeight, *, embedding: bool) -> tuple[torch.Tensor, int] | None:
        """As `rounded`, of integers chosen already; None where they can't be taken over."""
        ...

    def check_signatures(self, folder: Path, manifest: Manifest) -> list[Check]:
        """`io:GRAPH` for each graph: whether its inputs and outputs are those of the manifest."""
        ...

    def quantized_reference(self, request: WeightRequest) -> PreTrainedModel:
        """A PyTorch model whose weights are those that the artifact computes with, dequantized.

        Comparing with it separates errors of the graph from the loss of quantization. Weights that
        aren't quantized may be shared with the request's model.
        """
        ...

    def exact_parity(
        self,
        folder: Path,
        manifest: Manifest,
        reference: TorchEngine,
        states: Sequence[State],
        tokens: Iterator[int],
    ) -> list[Check]:
        """Compares what the files say with a reference, in float32 and without rounding inputs.

        So faults are found that are smaller than what rounding does (docs/develop/testing.md).

        Args:
            folder, manifest: the artifact.
            reference: over `quantized_reference`.
            states: from where calls are compared; they stay as they are.
            tokens: the next of a text.

        Returns:
            Nothing from back ends that can't.
        """
        ...


def backend_named(name: str, soc: str | None = None) -> Backend:
    """Imports a back end.

    Args:
        name: of `artifact.backends.BACKENDS`.
        soc: the chip to compile for, of `artifact.socs.SOCS`; None for the CPU.

    Raises:
        EdgeInfiniteError: no such back end, or its packages aren't installed (with the command), or
            an unknown chip.
    """
    entry = backend_entry(name)
    try:
        package = importlib.import_module(entry.exporter)
        return package.BACKEND if soc is None else package.backend_for(soc_named(soc))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("edgeinfinite"):
            raise
        raise EdgeInfiniteError(
            f"the back end {name} needs the package {error.name}; install it with: "
            f"{entry.export_install}"
        ) from error
