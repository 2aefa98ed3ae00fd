"""Experts: a token's row goes through those that its router chose; of others nothing is computed.

`export/graphs/experts.py` sorts rows by expert. A projection of all experts is one node of the
traced graph, which `split_experts` then makes into a Split of the rows, a product for each expert,
and a Concat. An expert that no token chose gets no rows, and its product returns at once.
So each product has constant weights, which onnxruntime packs as those of any layer; its own
`QMoE` takes a hundred times as long in the JVM's 1.29 (experiments/experts.md).

Letters: E experts, n rows, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.export.graphs.experts import BY_EXPERT
from edgeinfinite.export.onnx import operators
from edgeinfinite.export.onnx.initializers import initializer
from edgeinfinite.export.onnx.quantize import QuantizedWeight
from edgeinfinite.models.experts import as_rows, expert_modules, projections

_FLOAT = ("weight", "bias")
_QUANTIZED = ("codes", "scales", "zeros", "bias")
"""A projection's tensors in the order of the node's inputs, after rows and sizes."""


class ExpertProjection(nn.Module):
    """x Wᵀ + b with the weight of each row's expert, for tracing.

    Args:
        weight: `[E * O, I]`, of one expert after the other.
        bias: `[E, O]` or None.
        experts: E.
    """

    def __init__(
        self, weight: torch.Tensor | QuantizedWeight, bias: torch.Tensor | None, experts: int
    ) -> None:
        super().__init__()
        self.bits = self.group = 0
        parts: tuple[torch.Tensor | None, ...]
        if isinstance(weight, QuantizedWeight):
            assert weight.offsets is None
            self.bits, self.group = weight.packed_bits, weight.format.group
            parts = (weight.packed_codes(), weight.scales, weight.packed_zeros())
            self.outputs = len(weight.codes) // experts
            names: tuple[str, ...] = _QUANTIZED
        else:
            parts, names, self.outputs = (weight,), _FLOAT, len(weight) // experts
        self.names = names
        for name, tensor in zip(names, parts, strict=False):
            whole = None if tensor is None else tensor.unflatten(0, (experts, -1))
            self.register_buffer(name, whole)
        self.register_buffer("bias", bias)

    def forward(self, rows: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        """Rows `[n, I]`, the first expert's first, and how many each has, `[E]`: to `[n, O]`."""
        tensors = [getattr(self, name) for name in self.names]
        return operators.expert_products(
            rows, sizes, tensors, outputs=self.outputs, bits=self.bits, group=self.group
        )


def swap_experts(model: PreTrainedModel, weights: dict[str, QuantizedWeight]) -> int:
    """Lets a copy of a model compute its experts as this module says.

    Args:
        model: a copy, whose parameters others share.
        weights: those that are quantized, by name.

    Returns:
        How many layers have experts.
    """
    count = 0
    for path, part in expert_modules(model):
        made = nn.ModuleDict()
        for name in projections(part):
            full, bias = f"{path}.{name}", getattr(part, f"{name}_bias", None)
            rows = weights[full] if full in weights else as_rows(part, getattr(part, name))
            made[name] = ExpertProjection(rows, bias, part.num_experts)
            delattr(part, name)
        part.edgeinfinite_projections = made
        part.config._experts_implementation = BY_EXPERT
        count += 1
    return count


def split_experts(model: ir.Model) -> int:
    """Makes products of each expert's own of the nodes that stand for those of all.

    Returns:
        How many products.
    """
    graph, products = model.graph, 0
    for node in [node for node in graph if node.domain == operators.OWN_DOMAIN]:
        products += _split(graph, node)
    graph.opset_imports.pop(operators.OWN_DOMAIN, None)
    return products


def _split(graph: ir.Graph, node: ir.Node) -> int:
    rows, sizes, *tensors = node.inputs
    made, name = node.outputs[0], node.outputs[0].name
    by_expert = list(zip(*(_each(graph, value) for value in tensors), strict=False))
    split = ir.Node(
        "", "Split", [rows, sizes], [ir.AttrInt64("axis", 0)], num_outputs=len(by_expert)
    )
    nodes = [split]
    for number, (piece, parts) in enumerate(zip(split.outputs, by_expert, strict=True)):
        piece.name = f"{name}_rows_{number}"
        product = _product(node, piece, list(parts))
        product.outputs[0].name = f"{name}_{number}"
        nodes.append(product)
    results = [product.outputs[0] for product in nodes[1:]]
    for value in (*split.outputs, *results):
        value.type = made.type
    joined = ir.Node("", "Concat", results, [ir.AttrInt64("axis", 0)])
    graph.insert_before(node, [*nodes, joined])
    new = joined.outputs[0]
    new.type, new.shape = made.type, made.shape
    made.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    new.name = name
    for whole in tensors:
        if whole is not None and whole.name is not None and not whole.uses():
            del graph.initializers[whole.name]
    return len(results)


def _product(node: ir.Node, rows: ir.Value, tensors: list[ir.Value | None]) -> ir.Node:
    bits = node.attributes["bits"].as_int()
    if not bits:
        inputs = [rows, *tensors]
        return ir.Node("", "Gemm", _trimmed(inputs), [ir.AttrInt64("transB", 1)])
    codes, scales, zeros, bias = (*tensors, None, None)[:4]
    assert codes is not None and codes.shape is not None
    outputs, groups, _ = codes.shape.numpy()
    group = node.attributes["group"].as_int()
    values = {
        "K": groups * group,
        "N": outputs,
        "bits": bits,
        "block_size": group,
        "accuracy_level": operators.INT8_ACTIVATIONS,
    }
    return ir.Node(
        "com.microsoft",
        "MatMulNBits",
        _trimmed([rows, codes, scales, zeros, None, bias]),
        [ir.AttrInt64(name, value) for name, value in values.items()],
        version=1,
    )


def _trimmed(inputs: list[ir.Value | None]) -> list[ir.Value | None]:
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def _each(graph: ir.Graph, value: ir.Value | None) -> Iterator[ir.Value | None]:
    """A projection's tensor `[E, ...]` as one of each expert, over the same memory."""
    if value is None:
        while True:
            yield None
    assert value.const_value is not None
    for number, array in enumerate(value.const_value.numpy()):
        yield initializer(graph, f"{value.name}.{number}", array)
