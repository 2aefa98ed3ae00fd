"""A state that another artifact of the same model computed, in this one's layout and types.

Engines lay their caches out differently and hold them in float32 or float16; what the numbers mean
is the same for all of them. The bytes of an int8 cache stand for the same numbers where the scales
of its channels are the same, and for unknown ones elsewhere. Letters: see `artifact.geometry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgeinfinite.artifact.tensors import TensorSpec
from edgeinfinite.errors import EdgeInfiniteError

_FLOATS = {"float16", "float32"}
_INT8 = "int8"


def converted(
    tensors: Mapping[str, np.ndarray],
    cache_dims: Mapping[str, str],
    specs: Sequence[TensorSpec],
    *,
    same_scales: bool = False,
) -> dict[str, np.ndarray]:
    """The tensors of a session file as `specs` want them; names and sizes are checked elsewhere.

    Args:
        tensors: by name, caches cut to the slots in use.
        cache_dims: layout of the caches among them by role, each `B K C D` in any order.
        specs: the state tensors of the engine that goes on.
        same_scales: whether int8 caches of both have the same scales.

    Raises:
        ValueError: `cache_dims` has no layout that fits a cache.
        EdgeInfiniteError: a number is too large for a cache in float16, or one cache is int8 and
            the other isn't or has other scales.
    """
    caches = {spec.name: spec for spec in specs if spec.is_cache}
    return {
        name: _cache(array, cache_dims.get(caches[name].role, ""), caches[name], same_scales)
        if name in caches
        else array
        for name, array in tensors.items()
    }


def _cache(array: np.ndarray, dims: str, spec: TensorSpec, same_scales: bool) -> np.ndarray:
    found, wanted = dims.split(), spec.dims.split()
    if sorted(found) != sorted(wanted) or array.ndim != len(found):
        raise ValueError(f"{spec.name} {list(array.shape)} has the layout {dims!r}")
    moved = array.transpose([found.index(axis) for axis in wanted])
    types = {moved.dtype.name, spec.dtype}
    if _INT8 in types and not (types == {_INT8} and same_scales):
        raise EdgeInfiniteError(
            "a session with an int8 cache is in steps that its artifact measured, and this one has "
            "others or another type of cache; open it with the artifact that saved it, or read the "
            "text again"
        )
    if not {moved.dtype.name, spec.dtype} <= _FLOATS:
        return moved
    with np.errstate(over="ignore"):
        cast = moved.astype(spec.dtype)
    if np.isinf(cast).any() and np.isfinite(moved).all():
        raise EdgeInfiniteError(
            f"{spec.name} of this session has numbers that {spec.dtype} can't hold; export the "
            "artifact with --cache-type float32 to go on from it"
        )
    return cast
