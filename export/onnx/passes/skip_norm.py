"""Fuses a residual addition and the RMSNorm after it to SkipSimplifiedLayerNormalization."""

from __future__ import annotations

import onnx_ir as ir


def fuse_skip_norms(model: ir.Model) -> int:
    """Fuses every such pair whose addition has two terms of the same shape.

    Returns:
        How many were fused.
    """
    count = 0
    for norm in list(model.graph):
        if norm.op_type != "SimplifiedLayerNormalization":
            continue
        total = norm.inputs[0]
        add = total.producer() if total is not None else None
        if add is not None and add.op_type == "Add" and _equal_terms(add):
            _fuse(model.graph, add, norm)
            count += 1
    return count


def _equal_terms(add: ir.Node) -> bool:
    a, b = add.inputs
    return (
        a is not None
        and b is not None
        and a.shape is not None
        and b.shape is not None
        and len(a.shape) == 3
        and list(a.shape) == list(b.shape)
    )


def _fuse(graph: ir.Graph, add: ir.Node, norm: ir.Node) -> None:
    total, normed = add.outputs[0], norm.outputs[0]
    epsilon = norm.attributes["epsilon"].as_float()
    fused = ir.Node(
        "com.microsoft",
        "SkipSimplifiedLayerNormalization",
        [*add.inputs, norm.inputs[1]],
        [ir.AttrFloat32("epsilon", epsilon)],
        num_outputs=4,
        version=1,
    )
    for new, old in ((fused.outputs[0], normed), (fused.outputs[3], total)):
        new.name, new.type, new.shape = f"{old.name}_skip", old.type, old.shape
    fused.outputs[1].name = fused.outputs[2].name = ""
    # The fused node goes right behind the addition, before anything that reads the sum.
    graph.insert_after(add, fused)
    normed.replace_all_uses_with(fused.outputs[0])
    graph.remove(norm, safe=True)
    total.replace_all_uses_with(fused.outputs[3])
    graph.remove(add, safe=True)
