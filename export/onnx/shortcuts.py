"""Skips what `torch.onnx.export` does each time though our graphs need none of it.

torch.onnx traces a program again, to take apart the operators that it has no ONNX function for, and
parses the source of all its ONNX functions. Both together took a third of SmolLM2's export. Each is
patched by name while it isn't needed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.onnx._internal.exporter import _decomp, _fx_passes
from torch.onnx._internal.exporter._registration import ONNXRegistry

aten = torch.ops.aten

_CONVERSIONS = (aten.to.dtype, aten.to.device, aten.to.dtype_layout)

_IN_PLACE = {
    aten.mul_.Tensor: aten.mul.Tensor,
    aten.add_.Tensor: aten.add.Tensor,
    aten.div_.Tensor: aten.div.Tensor,
}
"""What may be computed into a tensor of its own where nobody else sees the tensor changed."""

_OF_BOOLS = {aten.__or__.Tensor: aten.logical_or, aten.__and__.Tensor: aten.logical_and}
"""What ONNX knows by another name, if both sides are bools: one `|` had SmolLM2's scorers traced a
second time, two thirds of what tracing them took."""

_traced_again = _fx_passes.decompose_with_registry
_all_functions = ONNXRegistry.from_torchlib


@contextmanager
def traced_once() -> Iterator[None]:
    """Inside, torch.onnx traces a program again only if there is an operator to take apart.

    It builds its table of ONNX functions once for all exports.
    """
    with (
        mock.patch.object(_fx_passes, "decompose_with_registry", _decomposed),
        mock.patch.object(ONNXRegistry, "from_torchlib", staticmethod(_functions)),
    ):
        yield


@functools.cache
def _functions(opset_version: int) -> ONNXRegistry:
    return _all_functions(opset_version)


def _decomposed(program: ExportedProgram, registry: ONNXRegistry) -> ExportedProgram:
    """What `decompose_with_registry` returns, or the program itself after small edits."""
    program.graph.eliminate_dead_code()
    _take_conversions_apart(program)
    _name_as_onnx(program)
    _compute_anew(program)
    known = set(_decomp.get_onnx_implemented_overloads(registry))
    if all(_is_known(node, known) for node in program.graph.nodes):
        program.graph_module.recompile()
        return program
    return _traced_again(program, registry)


def _take_conversions_apart(program: ExportedProgram) -> None:
    """Writes the only operators of our graphs that torch.onnx doesn't know as those it does."""
    for node in list(program.graph.nodes):
        if node.target == aten._assert_tensor_metadata.default:
            program.graph.erase_node(node)
        elif node.target in _CONVERSIONS:
            x, dtype = node.args[0], node.meta["val"].dtype
            if x.meta["val"].dtype == dtype:  # ONNX knows no devices
                node.replace_all_uses_with(x)
                program.graph_signature.replace_all_uses(node.name, x.name)
                program.graph.erase_node(node)
            else:
                node.target, node.args = aten._to_copy.default, (x,)
                node.kwargs = {"dtype": dtype}


def _name_as_onnx(program: ExportedProgram) -> None:
    """Writes `x | y` and `x & y` of bools as the logical operators."""
    for node in program.graph.nodes:
        if node.target in _OF_BOOLS and all(
            isinstance(one, Node) and one.meta["val"].dtype == torch.bool for one in node.args
        ):
            node.target = _OF_BOOLS[node.target].default


def _compute_anew(program: ExportedProgram) -> None:
    """Writes `x *= y` as `x * y` where x is a result that nothing else shares or reads later."""
    place = {node: i for i, node in enumerate(program.graph.nodes)}
    for node in program.graph.nodes:
        if node.target not in _IN_PLACE:
            continue
        x, other = node.args
        readers = [reader for reader in x.users if reader is not node]
        types = {one.meta["val"].dtype for one in (x, other) if isinstance(one, Node)}
        if (
            len(types) == 1
            and all(_is_of_its_own(one) for one in (x, *readers))
            and all(place[reader] < place[node] for reader in readers)
        ):
            node.target = _IN_PLACE[node.target]


def _is_of_its_own(node: Node) -> bool:
    """Whether a node's result shares no memory with what the node reads."""
    if not isinstance(node.target, OpOverload):
        return False
    returns = node.target._schema.returns
    return len(returns) == 1 and returns[0].alias_info is None


def _is_known(node: Node, known: Set[Any]) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return not isinstance(node.target, torch._ops.HigherOrderOperator)
    return node.target in known and not node.target._schema.is_mutable
