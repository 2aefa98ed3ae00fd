"""Reports for the manifest's `details` which operators of each method XNNPACK runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from executorch.exir import EdgeProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.fx import Graph

from edgeinfinite.export.executorch.passes.graph_tools import is_constant
from edgeinfinite.runtime_py.engines.executorch_engine import ONLY_PACKED

_PACKING = {"aten.linear", "torchao.dequantize_affine"}
_OF_SIZES = ("sym_size", "add", "floordiv", "mul", "neg", "sub")
_NO_WORK = ("getitem", "executorch_call_delegate", *_OF_SIZES)


def describe(manager: EdgeProgramManager, passes: dict[str, dict[str, int]]) -> dict[str, Any]:
    """The report, by method.

    Args:
        manager: after lowering.
        passes: how many places each pass rewrote, by method and pass name.

    Returns:
        For each method: `partitions`, their number; `delegated`, the count of each operator that
        XNNPACK runs; `undelegated`, the count of each operator that ExecuTorch's own kernels run;
        `only_packed_constants`, whether the method may share its packed weights; and `passes`.
    """
    return {name: _describe_method(manager, name) | {"passes": passes[name]} for name in passes}


def _describe_method(manager: EdgeProgramManager, name: str) -> dict[str, Any]:
    module = manager.exported_program(name).graph_module
    lowered = [m for _, m in module.named_modules() if isinstance(m, LoweredBackendModule)]
    delegated: Counter[str] = Counter()
    for part in lowered:
        delegated += _operators(part.original_module.graph)
    return {
        "partitions": len(lowered),
        "delegated": _sorted(delegated),
        "undelegated": _sorted(_operators(module.graph)),
        ONLY_PACKED: all(_packs_all_constants(part.original_module) for part in lowered),
    }


def _packs_all_constants(part: ExportedProgram) -> bool:
    """Whether all constants of a partition are weights, which XNNPACK packs when it is loaded."""
    constants = [node for node in part.graph.nodes if is_constant(part, node)]
    return all(_name(user.target) in _PACKING for node in constants for user in node.users)


def _operators(graph: Graph) -> Counter[str]:
    names = (_name(node.target) for node in graph.nodes if node.op == "call_function")
    return Counter(name for name in names if name not in _NO_WORK)


def _name(target: Any) -> str:
    """`aten.view_copy` for `aten.view_copy.default` in any dialect."""
    parts = str(getattr(target, "__name__", target)).split(".")
    return ".".join(parts[:2])


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
