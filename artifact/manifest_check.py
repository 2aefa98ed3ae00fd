"""What a manifest may say: checked in one place, before any file that it names is opened.

Letters of shapes as in `artifact.geometry`; U is the number of slots that a call is given of a
cache (docs/executorch.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.tensors import (
    CACHES,
    COMPRESS,
    DECODE,
    PREFILL,
    RECURRENT,
    RECURRENT_DIMS,
    GraphSpec,
    Heads,
    OutputSpec,
    TensorSpec,
    tensor_name,
)
from edgeinfinite.errors import EdgeInfiniteError

if TYPE_CHECKING:
    from edgeinfinite.artifact.manifest import BackboneInfo, Manifest

_BYTES = {
    **{"float64": 8, "float32": 4, "float16": 2, "bool": 1},
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("tokens", "length", "count"), ("int64",)),
    **dict.fromkeys(
        ("logits", "has_memory", "scores", "memory", "memory_norm"), ("float32", "float16")
    ),
    **dict.fromkeys(RECURRENT, ("float32",)),
}
"""The types of what the host itself reads and writes, by role; caches may have any."""

_MOST_BYTES = 1 << 36
"""64 GiB; a phone's state has megabytes."""
_MOST_LAYERS = 1_000
_MOST_SIZE = 1 << 40
"""Of any number in the backbone, and of a file."""


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
    for check in (_files, _backbone, _state, _graphs):  # in this order: each relies on those before
        for wrong in check(manifest):
            raise _refused(path, wrong)


def is_plain_name(name: str) -> bool:
    """Whether a file's name stays in its folder on every system: no separator, `..` or drive."""
    return name not in ("", ".", "..") and not any(sign in name for sign in "/\\:\0")


def _files(manifest: Manifest) -> Iterator[str]:
    for name, entry in manifest.files.items():
        if not is_plain_name(name):
            yield f"file name {name!r} points outside the artifact"
        if not 0 <= entry.size < _MOST_SIZE:
            yield f"{name} has {entry.size} bytes"
    for graph, spec in manifest.graphs.items():
        if spec.file not in manifest.files:
            yield f"graph {graph} is in {spec.file!r}, which isn't one of the artifact's files"
    if manifest.npu is not UNSET:
        for name in (manifest.npu.binary, *manifest.npu.files.values()):
            if name not in manifest.files:
                yield f"{name!r} was compiled, but isn't one of the artifact's files"


def _backbone(manifest: Manifest) -> Iterator[str]:
    backbone = manifest.backbone
    for name in ("layers", "query_heads", "kv_heads", "head_dim", "vocabulary", "max_positions"):
        if not 1 <= getattr(backbone, name) < _MOST_SIZE:
            yield f"the backbone has {getattr(backbone, name)} {name}"
    if backbone.layers > _MOST_LAYERS:
        yield f"the backbone has {backbone.layers} layers"
    if backbone.query_heads % backbone.kv_heads:
        yield f"{backbone.query_heads} query heads can't share {backbone.kv_heads} KV heads"
    if not isinstance(backbone.heads, UnsetType):
        yield from _heads(backbone, backbone.heads)


def _heads(backbone: BackboneInfo, heads: tuple[Heads, ...]) -> Iterator[str]:
    """What is wrong with the K and D of each layer."""
    if len(heads) != backbone.layers:
        yield f"it names the heads of {len(heads)} layers, the backbone has {backbone.layers}"
    for layer, (kv_heads, head_dim) in enumerate(heads):
        fits = 1 <= kv_heads <= backbone.kv_heads and 1 <= head_dim <= backbone.head_dim
        if not fits or backbone.query_heads % kv_heads:
            yield f"layer {layer} has {kv_heads} KV heads of {head_dim} dimensions"


def _state(manifest: Manifest) -> Iterator[str]:
    layers = manifest.backbone.layers
    names = [spec.name for spec in manifest.state]
    if len(set(names)) < len(names):
        yield "two state tensors have the same name"
    missing = {"length", "has_memory"} - set(names)
    if missing:
        yield f"it has no state tensor {min(missing)!r}"
    caches = [(spec.role, spec.layer) for spec in manifest.state if spec.is_cache]
    wanted = [(role, layer) for role in CACHES for layer in range(layers)]
    if sorted(caches, key=str) != sorted(wanted, key=str):
        yield f"its state doesn't have one K and one V cache for each of {layers} layers"
    size = 0
    for spec in manifest.state:
        yield from _tensor(manifest, spec)
        if spec.name != tensor_name(spec.role, spec.layer):
            yield f"state tensor {spec.name} has the role {spec.role} of layer {spec.layer}"
        if not all(isinstance(axis, int) for axis in spec.shape):
            yield f"state tensor {spec.name} has no fixed shape: {list(spec.shape)}"
        size += _bytes(spec)
    if size > _MOST_BYTES:
        yield f"its state would take {size:,} bytes"
    if len({spec.dtype for spec in manifest.state if spec.is_cache}) > 1:
        yield "its caches have several types"


def _graphs(manifest: Manifest) -> Iterator[str]:
    wanted = [PREFILL, DECODE]
    if manifest.geometry.policy == "carry" or manifest.gate is not None:
        wanted.append(COMPRESS)
    for name in wanted:
        if name not in manifest.graphs:
            yield f"graph {name} is missing"
    for name, graph in manifest.graphs.items():
        for wrong in _graph(manifest, graph, reads_tokens=name in (PREFILL, DECODE)):
            yield f"graph {name}: {wrong}"
    yield from _standing_still(manifest)


def _standing_still(manifest: Manifest) -> Iterator[str]:
    """A state that layers read and no graph renews would stand still, in silence."""
    held = {spec.name for spec in manifest.state if spec.role in RECURRENT}
    for name in (PREFILL, DECODE):
        graph = manifest.graphs[name]
        renewed = {output.updates for output in graph.outputs}
        carried = renewed & {spec.name for spec in graph.inputs}
        if missing := held - carried:
            yield f"graph {name} doesn't carry on {min(missing)}"


def _graph(manifest: Manifest, graph: GraphSpec, *, reads_tokens: bool) -> Iterator[str]:
    state = {spec.name: spec for spec in manifest.state}
    inputs = [spec.name for spec in graph.inputs]
    if len(set(inputs)) < len(inputs):
        yield "two inputs have the same name"
    if reads_tokens and ("tokens" not in inputs or "logits" not in _names(graph)):
        yield "it doesn't turn tokens into logits"
    for spec in graph.inputs:
        yield from _tensor(manifest, spec)
        if spec.name not in ("tokens", "count") and spec.name not in state:
            yield f"input {spec.name} isn't a state tensor"
    for output in graph.outputs:
        yield from _tensor(manifest, output)
        if not all(isinstance(axis, int) for axis in output.shape):
            yield f"output {output.name} has no fixed shape: {list(output.shape)}"
        for target in (output.alias, output.updates):
            if target is None:
                continue
            if target not in state:
                yield f"output {output.name} goes to {target}, which isn't a state tensor"
            elif (output.dtype, output.shape) != (state[target].dtype, state[target].shape):
                yield f"output {output.name} hasn't the shape and type of {target}"
    if sum(_bytes(output) for output in graph.outputs if output.alias is None) > _MOST_BYTES:
        yield "its outputs would take too much memory"


def _names(graph: GraphSpec) -> list[str]:
    return [spec.name for spec in graph.outputs]


def _tensor(manifest: Manifest, spec: TensorSpec | OutputSpec) -> Iterator[str]:
    """What is wrong with a tensor by itself, and against backbone and geometry."""
    if spec.dtype not in _BYTES:
        yield f"{spec.name} has the unknown type {spec.dtype!r}"
    if spec.dtype not in _TYPES.get(spec.role, tuple(_BYTES)):
        yield f"{spec.name} can't be of the type {spec.dtype}"
    letters = spec.dims.split()
    if len(letters) != len(spec.shape):
        yield f"{spec.name} has {len(spec.shape)} axes, its layout says {spec.dims!r}"
    if spec.role in RECURRENT:
        yield from _recurrent(spec)
        return
    if spec.layer is not None and not 0 <= spec.layer < manifest.backbone.layers:
        yield f"{spec.name} is of layer {spec.layer}"
    sizes = _sizes(manifest, spec.layer)
    for letter, axis in zip(letters, spec.shape, strict=True):
        if isinstance(axis, str):
            if (letter, axis) not in (("T", "T"), ("C", "U")):
                yield f"{spec.name} has the size {axis!r} on the axis {letter}"
        elif axis < 0:
            yield f"{spec.name} has the shape {list(spec.shape)}"
        elif letter != "T" and letter not in sizes:
            yield f"{spec.name} has an axis {letter!r}"
        elif letter == "C" and axis != sizes["C"]:
            yield f"{spec.name} has room for {axis} tokens, the geometry says {sizes['C']}"
        elif letter != "T" and axis != sizes[letter]:
            yield f"{spec.name} has {axis} on the axis {letter}, it must be {sizes[letter]}"


def _recurrent(spec: TensorSpec | OutputSpec) -> Iterator[str]:
    """What is wrong with a state of a layer that doesn't attend: its own sizes are free."""
    if spec.layer is None or not 0 <= spec.layer < _MOST_LAYERS:
        yield f"{spec.name} is of layer {spec.layer}"
    if spec.dims != RECURRENT_DIMS[spec.role]:
        yield f"{spec.name} has the layout {spec.dims!r}"
    if any(isinstance(axis, str) or axis < 1 for axis in spec.shape):
        yield f"{spec.name} has the shape {list(spec.shape)}"


def _sizes(manifest: Manifest, layer: int | None) -> dict[str, int]:
    """The size of an axis by its letter; C and G are known for a layer only.

    W of a layer with a sliding window is what a compression leaves of it.
    """
    backbone, geometry = manifest.backbone, manifest.geometry
    kv_heads, head_dim = backbone.heads_of(layer)
    sizes = {
        "1": 1,
        "B": 1,
        "L": backbone.layers,
        "K": kv_heads,
        "D": head_dim,
        "V": backbone.vocabulary,
        "W": geometry.window_length,
    }
    if layer is not None:
        sizes["C"] = _capacities(geometry, backbone.layers)[layer]
        sizes["G"] = geometry.slots_of(layer)
        if geometry.slides(layer):
            sizes["W"] = geometry.kept_of(layer)
    return sizes


@lru_cache(maxsize=4)
def _capacities(geometry: Geometry, layers: int) -> list[int]:
    return geometry.capacities(layers)


def _bytes(spec: TensorSpec | OutputSpec) -> int:
    return _BYTES[spec.dtype] * math.prod(axis for axis in spec.shape if isinstance(axis, int))


def _refused(path: Path, wrong: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(f"{path} can't be right: {wrong}; export the artifact again")
