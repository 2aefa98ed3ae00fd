"""Rewrites PyTorch's operators as ExecuTorch's edge dialect, without tracing again.

`executorch.exir.to_edge` knows every operator, but it traces the program about twenty times, which
takes many minutes for 30 layers. After our passes a program has only a few kinds of operators, and
this module lists their counterparts. A program with any other operator goes through `to_edge`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import (
    constant,
    finish,
    insert,
    replace,
    shape_of,
)

COMPILE_CONFIG = EdgeCompileConfig(_check_ir_validity=False)
"""The verifier doesn't know `llama::update_cache`, which writes into an argument."""

aten = torch.ops.aten
edge = exir_ops.edge.aten

_SAME_NAME = {
    "aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor", "aten.bmm.default",
    "aten.cat.default", "aten.clamp.default", "aten.embedding.default", "aten.exp.default",
    "aten.gather.default", "aten.ge.Scalar", "aten.ge.Tensor", "aten.gelu.default",
    "aten.gt.Tensor", "aten.index.Tensor", "aten.index_select.default", "aten.linear.default",
    "aten.log.default", "aten.log1p.default", "aten.logical_and.default", "aten.lt.Scalar",
    "aten.lt.Tensor", "aten.neg.default",
    "aten.pow.Tensor_Scalar", "aten.relu.default", "aten.rsqrt.default", "aten.sigmoid.default",
    "aten.sqrt.default", "aten.sum.dim_IntList", "aten.tanh.default", "aten.topk.default",
    "aten.where.self",
    "llama.update_cache.default", "llama.channelwise_gated_delta_rule.default",
    "quantized_decomposed.embedding_byte.default",
    "quantized_decomposed.quantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_tensor.default", "torchao.choose_qparams_affine.default",
    "torchao.dequantize_affine.default",
    "torchao.quantize_affine.default",
}  # fmt: skip

_OF_SIZES = (operator.add, operator.floordiv, operator.mul, operator.neg, operator.sub)
_KEPT = (operator.getitem, aten.sym_size.int, *_OF_SIZES)
_TWO_OPERANDS = ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "rsub.Scalar")


def unknown_operators(program: ExportedProgram) -> set[str]:
    """Names of the operators that this module doesn't know."""
    return {str(node.target) for node in program.graph.nodes if not _is_known(node)}


def to_edge(program: ExportedProgram) -> ExportedProgram:
    """The program in the edge dialect.

    Args:
        program: after our passes, without unknown operators; changed in place.
    """
    for node in list(program.graph.nodes):
        if node.op == "call_function":
            _rewrite(program, node)
    for node in program.graph.nodes:
        _forget_strides(node)
    finish(program)
    return ExportedProgram(
        root=program.graph_module,
        graph=program.graph,
        graph_signature=program.graph_signature,
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=[EXIREdgeDialectVerifier(edge_compile_config=COMPILE_CONFIG, class_only=True)],
    )


def _is_known(node: Node) -> bool:
    if node.op != "call_function" or node.target in _KEPT or str(node.target) in _SAME_NAME:
        return True
    if node.target is aten.rsub.Scalar:
        return len(node.args) == 2 and not node.kwargs  # without a factor for the second operand
    if node.target in (aten.dropout.default, aten.type_as.default, aten.to.device):
        return _does_nothing(node)
    if node.target is aten.chunk.default:
        return all(user.target is operator.getitem for user in node.users)
    if node.target is aten.matmul.default:
        return _is_batched(node)
    if node.target is aten.max_pool1d.default:
        return len(node.args) == 4  # without distances, nothing rounded up
    if node.target is aten.to.dtype:
        known = node.args[0].meta["val"].dtype in (torch.int64, torch.float16)
        return known or node.meta["val"].dtype == torch.bool or _changes_nothing(node)
    return node.target in _REWRITES or node.target is aten.where.ScalarOther


def _rewrite(program: ExportedProgram, node: Node) -> None:
    if node.target in _KEPT:
        return
    if node.target in _REWRITES:
        _REWRITES[node.target](node)
        return
    if node.target is aten.where.ScalarOther:
        condition, x, other = node.args
        node.target, node.args = edge.where.self, (condition, x, _scalar(program, other, node))
        return
    if str(node.target).endswith(_TWO_OPERANDS):
        for index, operand in enumerate(node.args[:2]):
            if not isinstance(operand, Node):
                node.update_arg(index, _scalar(program, operand, node))
    if node.target is aten.rsub.Scalar:
        node.target, node.args = edge.sub.Tensor, (node.args[1], node.args[0])
        return
    node.target = _edge_operator(node.target)


def _edge_operator(target: Any) -> Any:
    """aten.add.Tensor -> edge.aten.add.Tensor."""
    found = exir_ops.edge
    for part in str(target).split("."):
        found = getattr(found, part)
    return found


def _scalar(program: ExportedProgram, value: Any, node: Node) -> Node:
    """A number as a constant tensor, because the dialect's operators take only tensors."""
    dtype = node.meta["val"].dtype
    name = f"number_{float(value)!r}".replace(".", "_").replace("-", "m").replace("+", "")
    # 1 may stand among whole numbers, and elsewhere among others.
    if dtype != torch.float32:
        name = f"{name}_{str(dtype).removeprefix('torch.')}"
    return constant(program, name, torch.tensor(float(value), dtype=dtype))


def _rename(target: Any, arguments: Callable[[Node], tuple[Any, ...]]) -> Callable[[Node], None]:
    def rewrite(node: Node) -> None:
        args = arguments(node)
        node.target, node.args, node.kwargs = target, args, {}

    return rewrite


def _drop(node: Node) -> None:
    replace(node, node.args[0])


def _swapped(node: Node) -> tuple[Any, ...]:
    """Arguments of `permute` for a transposition."""
    x, first, second = node.args
    axes = list(range(len(shape_of(x))))
    axes[first], axes[second] = axes[second], axes[first]
    return x, axes


def _narrowed(node: Node) -> tuple[Any, ...]:
    x, axis, start, length = node.args
    return x, axis, start, start + length


def _silu(node: Node) -> None:
    x: Any = node.args[0]
    sigmoid = insert(node, aten.sigmoid.default, x)
    sigmoid.target = edge.sigmoid.default
    node.target, node.args = edge.mul.Tensor, (x, sigmoid)


def _converted(node: Node) -> None:
    if _changes_nothing(node):
        _drop(node)
        return
    x: Any = node.args[0]
    order = list(range(len(shape_of(x))))
    node.target = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
    node.args, node.kwargs = (x,), {"dtype": node.args[1], "dim_order": order}


def _changes_nothing(node: Node) -> bool:
    return bool(node.args[0].meta["val"].dtype == node.meta["val"].dtype)


def _does_nothing(node: Node) -> bool:
    """Whether a dropout, a `type_as` or a `to` of the CPU returns its input."""
    if node.target is aten.dropout.default:
        return not (node.args[1] and node.args[2])
    return _changes_nothing(node)


def _sliced(node: Node) -> None:
    """Every part of a `chunk` as a slice of its own."""
    x, count, *axis = node.args
    value = x.meta["val"]
    at = (axis[0] if axis else 0) % value.dim()
    size = -(-int(value.shape[at]) // int(count))
    for part in list(node.users):
        start = int(part.args[1]) * size
        end = min(start + size, int(value.shape[at]))
        sliced = insert(part, aten.slice.Tensor, x, at, start, end)
        sliced.target = edge.slice_copy.Tensor
        replace(part, sliced)
    node.graph.erase_node(node)


def _counted(node: Node) -> None:
    dtype = node.meta["val"].dtype
    node.target, node.args, node.kwargs = (
        edge.arange.start_step,
        (0, node.args[0]),
        {"dtype": dtype},
    )


def _is_batched(node: Node) -> bool:
    """Whether a product is one of as many matrices as another."""
    shapes = [shape_of(x) for x in node.all_input_nodes]
    return all(len(shape) == 3 for shape in shapes) and len({str(s[0]) for s in shapes}) == 1


def _pooled(node: Node) -> None:
    """Over the last axis, as pooling of a plane with one row; the kernel gives places, too."""
    x, *sizes = node.args
    plane = insert(node, aten.unsqueeze.default, x, -2)
    before = [[1, sizes[0][0]], [1, sizes[1][0]], [0, sizes[2][0]]]
    both = insert(node, aten.max_pool2d_with_indices.default, plane, *before)
    row = insert(node, aten.squeeze.dims, insert(node, operator.getitem, both, 0), [-2])
    plane.target, both.target = edge.unsqueeze_copy.default, edge.max_pool2d_with_indices.default
    row.target = edge.squeeze_copy.dims
    replace(node, row)


def _filled(node: Node) -> None:
    dtype = node.meta["val"].dtype
    node.target, node.args, node.kwargs = edge.full.default, (node.args[0], 0), {"dtype": dtype}


_REWRITES: dict[Any, Callable[[Node], None]] = {
    aten.__or__.Tensor: _rename(edge.bitwise_or.Tensor, lambda n: n.args),
    aten.alias.default: _drop,
    aten.arange.default: _counted,
    aten.chunk.default: _sliced,
    aten.clone.default: _drop,  # permute_copy has made it contiguous already
    aten.contiguous.default: _drop,
    aten.dropout.default: _drop,
    aten.expand.default: _rename(edge.expand_copy.default, lambda n: n.args),
    aten.item.default: _rename(aten._local_scalar_dense.default, lambda n: n.args),
    aten.matmul.default: _rename(edge.bmm.default, lambda n: n.args),
    aten.max_pool1d.default: _pooled,
    aten.narrow.default: _rename(edge.slice_copy.Tensor, _narrowed),
    aten.permute.default: _rename(edge.permute_copy.default, lambda n: n.args),
    aten.select.int: _rename(edge.select_copy.int, lambda n: n.args),
    aten.silu.default: _silu,
    aten.slice.Tensor: _rename(edge.slice_copy.Tensor, lambda n: n.args),
    aten.softmax.int: _rename(edge._softmax.default, lambda n: (n.args[0], n.args[1], False)),
    aten.square.default: _rename(edge.pow.Tensor_Scalar, lambda n: (n.args[0], 2)),
    aten.to.device: _drop,
    aten.to.dtype: _converted,
    aten.transpose.int: _rename(edge.permute_copy.default, _swapped),
    aten.type_as.default: _drop,
    aten.unsqueeze.default: _rename(edge.unsqueeze_copy.default, lambda n: n.args),
    aten.view.default: _rename(edge.view_copy.default, lambda n: n.args),
    aten.zeros.default: _filled,
}


def _forget_strides(node: Node) -> None:
    """Makes a node's tensor contiguous: the dialect's operators return copies, not views."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and not value.is_contiguous():
        fake: Any = value
        with fake.fake_mode:
            node.meta["val"] = torch.empty(value.shape, dtype=value.dtype)
