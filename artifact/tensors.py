"""The tensors of an artifact's graphs: what each one holds, of which layer, in which layout.

Shapes use the letters of `artifact.geometry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

PREFILL = "prefill_segment"
DECODE = "decode_step"
COMPRESS = "compress_memory"

Role = Literal[
    "tokens",
    "logits",
    "length",
    "has_memory",
    "k_cache",
    "v_cache",
    "scores",
    "memory",
    "memory_norm",
    "k_recall",
    "v_recall",
    "k_window",
    "v_window",
    "count",
    "k_new",
    "v_new",
    "conv_state",
    "recurrent_state",
]
"""What a tensor holds. `k_recall` to `v_window` are what `compress_memory` returns under `carry`:
the recall slots and the moved window of one layer, for the host to copy into the caches. Graphs of
fixed shape (`docs/npu.md`) read `count`, how many of their T tokens belong to the text, and return
`k_new` and `v_new`, for the host to write behind what a layer has in use. `conv_state` and
`recurrent_state` are what layers keep beside caches; each is counted by itself."""

SCORES: Role = "scores"
"""Of the pairs in a layer's recall slots, policy `carry`."""

SUMS: tuple[Role, ...] = ("memory", "memory_norm")
"""M and z."""

CACHES: tuple[Role, ...] = ("k_cache", "v_cache")
RECALL_PARTS: tuple[Role, ...] = ("k_recall", "v_recall")
WINDOW_PARTS: tuple[Role, ...] = ("k_window", "v_window")
NEW_PARTS: tuple[Role, ...] = ("k_new", "v_new")

CONV_STATE: Role = "conv_state"
"""The newest columns of what a causal convolution reads."""

RECURRENT_STATE: Role = "recurrent_state"
"""What a gated delta rule or an SSM remembers of all tokens, a matrix for each head."""

RECURRENT: tuple[Role, ...] = (CONV_STATE, RECURRENT_STATE)
"""States beside the caches: read and written whole, float32, of a constant size."""

RECURRENT_DIMS: dict[Role, str] = {CONV_STATE: "B E R", RECURRENT_STATE: "B U I J"}
"""Their layouts. E channels, R columns: the length of the kernel less one. U heads of values, I
dimensions of a key, J of a value. An SSM's B is its key, and what it reads, its value."""


class Heads(NamedTuple):
    """Of a layer that holds a cache: K, its KV heads, and D, their dimension."""

    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class TensorSpec:
    """One input or state tensor.

    Args:
        name: as in the graph: `tokens`, `length`, `k_cache_0`, `memory`, ...
        dtype: numpy's name, `float32`, `int64`, ...
        shape: sizes; a string stands for a size that each call chooses (`T`).
        dims: the axes' letters, `B K C D` (see `artifact.geometry`): the layout.
        role: what it holds.
        layer: whose, None for tensors that all layers share.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    dims: str
    role: Role
    layer: int | None = None

    @property
    def is_cache(self) -> bool:
        """Whether it is the K or V cache of a layer."""
        return self.role in CACHES


@dataclass(frozen=True)
class OutputSpec:
    """One output.

    Args:
        name, dtype, shape, dims, role, layer: as in `TensorSpec`.
        alias: the state tensor whose own buffer this output must be bound to, updated in place.
        updates: the state tensor that the host replaces by this output after the call.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    dims: str
    role: Role
    layer: int | None = None
    alias: str | None = None
    updates: str | None = None


@dataclass(frozen=True)
class RecurrentTensor:
    """One tensor of what the state holds of a layer beside its caches.

    Args:
        role: one of `RECURRENT`.
        shape: its sizes, in the layout `RECURRENT_DIMS` has for it.
    """

    role: Role
    shape: tuple[int, ...]


@dataclass(frozen=True)
class GraphSpec:
    """One graph: the file (or the program that holds it as a method) and its tensors in order."""

    file: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[OutputSpec, ...]


def tensor_name(role: Role, layer: int | None = None) -> str:
    """The name of a tensor in a graph and in session files: `k_cache_7`, `memory`."""
    return role if layer is None else f"{role}_{layer}"


def tensor_spec(
    role: Role, dtype: str, shape: tuple[int | str, ...], dims: str, layer: int | None = None
) -> TensorSpec:
    """A `TensorSpec` under the name that its role and layer give it."""
    return TensorSpec(tensor_name(role, layer), dtype, shape, dims, role, layer)


def updated(state: TensorSpec) -> OutputSpec:
    """The output that replaces a state tensor after the call."""
    return OutputSpec(
        f"{state.name}_out",
        state.dtype,
        state.shape,
        state.dims,
        state.role,
        state.layer,
        updates=state.name,
    )


def updated_in_place(cache: TensorSpec) -> OutputSpec:
    """The output that is bound to a cache's own buffer."""
    return OutputSpec(
        f"{cache.name}_out",
        cache.dtype,
        cache.shape,
        cache.dims,
        cache.role,
        cache.layer,
        alias=cache.name,
    )


def state_specs(
    layers: int,
    kv_heads: int,
    capacities: Sequence[int],
    head_dim: int,
    *,
    memory: bool,
    cache_type: str = "float32",
    scored: Mapping[int, int] | None = None,
    recurrent: Sequence[RecurrentTensor] = (),
    heads: Sequence[Heads] = (),
) -> tuple[TensorSpec, ...]:
    """The state in the layout `B K C D`, which PyTorch and ONNX Runtime use.

    Args:
        layers: L.
        kv_heads: K.
        capacities: C of every layer.
        head_dim: D.
        memory: whether there is a gate that reads M and z.
        cache_type: of K and V, `float32`, `float16` or `int8`; everything else is float32.
        scored: G of the layers whose recall slots have scores.
        recurrent: what layers keep beside caches, in order.
        heads: K and D of every layer, where they differ; such a model has no memory.
    """
    assert not (heads and memory), "M and z have one K and D for all layers"
    sizes = heads or [Heads(kv_heads, head_dim)] * layers
    caches = [
        tensor_spec(role, cache_type, (1, size.kv_heads, capacity, size.head_dim), "B K C D", layer)
        for role in CACHES
        for layer, (capacity, size) in enumerate(zip(capacities, sizes, strict=True))
    ]
    scores = [
        tensor_spec(SCORES, "float32", (1, sizes[layer].kv_heads, slots), "B K G", layer)
        for layer, slots in (scored or {}).items()
    ]
    sums = [
        tensor_spec("memory", "float32", (layers, kv_heads, head_dim, head_dim), "L K D D"),
        tensor_spec("memory_norm", "float32", (layers, kv_heads, head_dim), "L K D"),
    ]
    counters = [
        tensor_spec("length", "int64", (layers,), "L"),
        tensor_spec("has_memory", "float32", (1,), "1"),
    ]
    held: list[TensorSpec] = []
    for tensor in recurrent:
        number = sum(spec.role == tensor.role for spec in held)
        dims = RECURRENT_DIMS[tensor.role]
        held.append(tensor_spec(tensor.role, "float32", tensor.shape, dims, number))
    return tuple(caches + scores + held + (sums if memory else []) + counters)
