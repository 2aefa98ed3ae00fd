"""A GPU for machines that have none: its tensors compute on the CPU but mix with nothing else.

A real GPU refuses operators whose tensors lie on different devices (single numbers of the CPU may
join), and numpy can't read its tensors. So does this: what runs here keeps its tensors together.
It proves nothing about a GPU's kernels or their rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

GPU = torch.device("cuda", 0)

_GUARDED = (
    torch.Tensor.__getitem__,
    torch.Tensor.__setitem__,
    torch.Tensor.contiguous,
    torch.Tensor.copy_,
    torch.Tensor.tolist,
    torch.Tensor.__int__,
    torch.Tensor.__float__,
    torch.Tensor.__bool__,
)
"""Builds without CUDA refuse these before they dispatch."""

_COPIES = (torch.ops.aten.copy_.default, torch.Tensor.copy_, torch.Tensor.__setitem__)
"""These may read another device's tensor."""


class _OnGpu(torch.Tensor):
    """A tensor that says it is on the GPU; `inner` is the CPU's tensor with its numbers."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> _OnGpu:
        made: _OnGpu = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=GPU,
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        if function in _GUARDED:
            return _run(function, args, kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, args: Any = (), kwargs: Any = None):
        return _run(operator, args, kwargs or {})


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None):
        return _run(operator, args, kwargs or {})


def _run(operator: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given = tree_flatten((args, kwargs))[0]
    ours = [x for x in given if isinstance(x, _OnGpu)]
    others = [x for x in given if isinstance(x, torch.Tensor) and not isinstance(x, _OnGpu)]
    copies = operator in _COPIES
    if ours and not copies and any(x.dim() for x in others):
        raise RuntimeError(f"{operator}: tensors on the GPU and on the CPU")
    devices = [x for x in given if isinstance(x, torch.device)]
    to_gpu = bool(ours) and not (copies and not isinstance(args[0], _OnGpu))
    if devices:
        to_gpu = devices[0].type == GPU.type
    args, kwargs = tree_map(_of_the_cpu, (args, kwargs))
    result = operator(*args, **kwargs)
    known = {id(x.inner): x for x in ours}

    def placed(x: Any) -> Any:
        if not to_gpu or not isinstance(x, torch.Tensor) or isinstance(x, _OnGpu):
            return x
        argument = known.get(id(x))  # an operator in place returns its argument
        return _OnGpu(x) if argument is None else argument

    return tree_map(placed, result)


def _of_the_cpu(x: Any) -> Any:
    if isinstance(x, _OnGpu):
        return x.inner
    return torch.device("cpu") if isinstance(x, torch.device) else x


@contextmanager
def pretend_gpu() -> Iterator[torch.device]:
    """Inside the block, tensors and modules can be moved to the device that it returns."""
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(data) passes through the mode, too
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        # Views of wrapped tensors can't be made in inference mode.
        no_grad = mock.patch("torch.inference_mode", torch.no_grad)
        with mock.patch("torch.cuda._lazy_init"), no_grad, _Mode():
            yield GPU
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
        torch._C._set_only_lift_cpu_tensors(False)
