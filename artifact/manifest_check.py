"""What a manifest may say: checked in one place, before any file that it names is opened."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeinfinite.artifact.tensors import CACHES, OutputSpec, TensorSpec
from edgeinfinite.errors import EdgeInfiniteError

if TYPE_CHECKING:
    from edgeinfinite.artifact.manifest import Manifest

_BYTES = {
    **{"float64": 8, "float32": 4, "float16": 2, "bool": 1},
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_MOST_STATE_BYTES = 1 << 36
"""64 GiB; a phone's state has megabytes."""
_MOST_LAYERS = 10_000


def check_json(path: Path, text: bytes) -> None:
    """Refuses JSON in which an object has a name twice: readers disagree on which one counts.

    Raises:
        EdgeInfiniteError: it does, or it isn't JSON.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise _refused(path, f"{twice!r} stands in it twice")
        return fields

    try:
        json.loads(text, object_pairs_hook=unique)
    except RecursionError as error:
        raise _refused(path, "it is nested too deeply") from error
    except ValueError as error:
        raise EdgeInfiniteError(f"{path} can't be read: {error}; export it again") from error


def check_manifest(path: Path, manifest: Manifest) -> None:
    """Refuses a manifest that no export writes.

    Raises:
        EdgeInfiniteError: with the first thing that is wrong.
    """
    for check in (_names, _backbone, _state, _graphs):  # in this order: each relies on those before
        wrong = check(manifest)
        if wrong:
            raise _refused(path, wrong)


def _names(manifest: Manifest) -> str | None:
    for name in manifest.files:
        if Path(name).name != name or "\\" in name or "\0" in name:
            return f"file name {name!r} points outside the artifact"
    for graph, spec in manifest.graphs.items():
        if spec.file not in manifest.files:
            return f"graph {graph} is in {spec.file!r}, which isn't one of the artifact's files"
    return None


def _backbone(manifest: Manifest) -> str | None:
    backbone = manifest.backbone
    for name in ("layers", "query_heads", "kv_heads", "head_dim", "vocabulary", "max_positions"):
        if getattr(backbone, name) < 1:
            return f"the backbone has {getattr(backbone, name)} {name}"
    if backbone.layers > _MOST_LAYERS:
        return f"the backbone has {backbone.layers} layers"
    return None


def _state(manifest: Manifest) -> str | None:
    layers = manifest.backbone.layers
    capacities = manifest.geometry.capacities(layers)
    names = [spec.name for spec in manifest.state]
    if len(set(names)) < len(names):
        return "two state tensors have the same name"
    missing = {"length", "has_memory"} - set(names)
    if missing:
        return f"it has no state tensor {min(missing)!r}"
    caches = [(spec.role, spec.layer) for spec in manifest.state if spec.is_cache]
    if sorted(caches, key=str) != sorted(
        ((role, layer) for role in CACHES for layer in range(layers)), key=str
    ):
        return f"its state doesn't have one K and one V cache for each of {layers} layers"
    size = 0
    for spec in manifest.state:
        wrong = _tensor(spec)
        if wrong:
            return wrong
        if not all(isinstance(axis, int) for axis in spec.shape):
            return f"state tensor {spec.name} has no fixed shape: {list(spec.shape)}"
        size += _BYTES[spec.dtype] * math.prod(int(axis) for axis in spec.shape)
        if spec.is_cache and spec.layer is not None:
            axes = dict(zip(spec.dims.split(), spec.shape, strict=True))
            if axes.get("C") != capacities[spec.layer]:
                return (
                    f"{spec.name} has room for {axes.get('C')} tokens, the geometry says "
                    f"{capacities[spec.layer]}"
                )
    if size > _MOST_STATE_BYTES:
        return f"its state would take {size:,} bytes"
    return None


def _graphs(manifest: Manifest) -> str | None:
    for name, graph in manifest.graphs.items():
        tensors: list[TensorSpec | OutputSpec] = [*graph.inputs, *graph.outputs]
        for spec in tensors:
            wrong = _tensor(spec)
            if wrong:
                return f"graph {name}: {wrong}"
    return None


def _tensor(spec: TensorSpec | OutputSpec) -> str | None:
    if spec.dtype not in _BYTES:
        return f"{spec.name} has the unknown type {spec.dtype!r}"
    if len(spec.dims.split()) != len(spec.shape):
        return f"{spec.name} has {len(spec.shape)} axes, its layout says {spec.dims!r}"
    if any(isinstance(axis, int) and axis < 0 for axis in spec.shape):
        return f"{spec.name} has the shape {list(spec.shape)}"
    return None


def _refused(path: Path, wrong: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(f"{path} can't be right: {wrong}; export the artifact again")
