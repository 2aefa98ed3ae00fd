"""Tools that the passes share: small edits of an exported program's graph before lowering.

A pass is a function that changes the program in place and returns how many places it rewrote. It
edits the graph directly. Nothing is traced again, so a pass over 2,000 nodes takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from executorch.backends.transforms.utils import (
    create_constant_placeholder,
    get_param_tensor,
    is_param_node,
)
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.utils import _pytree as pytree

aten = torch.ops.aten


def nodes_of(program: ExportedProgram, *targets: Any) -> Iterator[Node]:
    """The nodes that call one of these operators, in order; the graph may change meanwhile."""
    for node in list(program.graph.nodes):
        if node.op == "call_function" and node.target in targets:
            yield node


def shape_of(node: Node) -> torch.Size:
    """Sizes of a node's tensor, symbolic where they are dynamic."""
    return node.meta["val"].shape


def insert(before: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
    """A new call in front of `before`, with the shape and dtype of its result known."""
    graph = before.graph
    with graph.inserting_before(before):
        node = graph.call_function(target, args, kwargs)
    values = pytree.tree_map_only(Node, lambda n: n.meta["val"], (args, kwargs))
    fake_mode = detect_fake_mode((before.meta["val"], *values[0]))
    assert fake_mode is not None
    with fake_mode:
        node.meta["val"] = target(*values[0], **values[1])
    return node


def insert_view(before: Node, x: Node, sizes: list[int]) -> Node:
    """A view of `x` in another shape, with at most one open size (-1).

    `reshape` would write the open size as a symbol instead.
    """
    if not x.meta["val"].is_contiguous():
        x = insert(before, aten.clone.default, x, memory_format=torch.contiguous_format)
    return insert(before, aten.view.default, x, sizes)


def replace(old: Node, new: Node) -> None:
    """Lets all users of `old` read `new`, and removes `old`."""
    old.replace_all_uses_with(new)
    old.graph.erase_node(old)


def constant(program: ExportedProgram, name: str, value: torch.Tensor) -> Node:
    """A constant of the program, one node for all uses of the same name."""
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name == name:
            return node
    first = next(node for node in program.graph.nodes if node.op == "placeholder")
    with program.graph.inserting_before(first):
        return create_constant_placeholder(
            program, program.graph, name, InputKind.BUFFER, value, persistent_buffer=True
        )


def is_constant(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is a weight or another constant of the program."""
    return node.op == "placeholder" and bool(is_param_node(program, node))


def value_of(program: ExportedProgram, node: Node) -> torch.Tensor:
    """A constant's data."""
    value = get_param_tensor(program, node)
    assert value is not None
    return value.detach()


def tidy(program: ExportedProgram) -> None:
    """Removes unused nodes and brings the signature in line with the graph."""
    output = program.graph.output_node()
    for spec, node in zip(program.graph_signature.output_specs, output.args[0], strict=True):
        spec.arg.name = node.name
    program.graph.eliminate_dead_code()


def finish(program: ExportedProgram) -> None:
    """Tidies, checks the graph, and writes its code anew, which takes longer than most passes."""
    tidy(program)
    program.graph.lint()
    program.graph_module.recompile()
