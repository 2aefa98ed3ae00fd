"""Computes a part of a program that XNNPACK runs, with PyTorch and without rounding activations.

The part's graph, constants and formats are read from the file, so what is computed is what the file
says. Weights are the integers times their scales; a conversion to 8 bits passes its input on, or,
where its scale is known before, the input in steps of that scale.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.serialization.xnnpack_graph_serialize import (
    XNNHeader,
    _get_schema_bytes,
)
from executorch.exir._serialize._flatbuffer import _flatc_decompile
from torch.nn import functional

_NONE = 2**32 - 1
_INPUT, _OUTPUT = 1, 2
"""Flags of values."""
_TRANSPOSED = 1
"""Flag of a product: the second operand stands as `[I, O]`, of a batched one as `[N, K]`."""

Node = dict[str, Any]
Values = Mapping[int, torch.Tensor]


class UnknownPart(Exception):
    """The program holds what can't be computed here; the message names it."""


class _Values(dict[int, torch.Tensor]):
    """Of one call; a constant becomes numbers each time it is used, so that no copy stays."""

    def __init__(self, constants: Mapping[int, Callable[[], torch.Tensor]]) -> None:
        super().__init__()
        self._constants = constants

    def __missing__(self, number: int) -> torch.Tensor:
        return self._constants[number]()


class XnnpackGraph:
    """One delegate.

    Args:
        blob: what the program keeps for it.
        named: the program's constants by key.

    Raises:
        UnknownPart: it holds operations or formats that aren't known here.
    """

    def __init__(self, blob: bytes, named: Mapping[str, bytes]) -> None:
        graph = _decoded(blob)
        self.nodes: list[Node] = graph["xnodes"]
        self.values: dict[int, Node] = {}
        self.keys: list[str] = [entry["named_key"] for entry in graph["constant_data"]]
        self._constants: dict[int, Callable[[], torch.Tensor]] = {}
        self._externals: list[tuple[int, int, int]] = []

        def data(index: int) -> torch.Tensor:
            return torch.frombuffer(bytearray(named[self.keys[index]]), dtype=torch.uint8)

        constants = []
        for value in graph["xvalues"]:
            union = value["xvalue_union"]
            tensor = union.get("tensor_value", union)
            self.values[tensor["id_out"]] = union
            if tensor["constant_buffer_idx"]:
                constants.append(tensor)
                self._constants[tensor["id_out"]] = partial(_constant, union, tensor, data)
            if tensor["external_id"] != _NONE:
                entry = (tensor["external_id"], tensor["id_out"], tensor["flags"])
                self._externals.append(entry)
        self._externals.sort()
        kinds = {node["xnode_union_type"] for node in self.nodes}
        formats = {tensor["datatype"] for tensor in constants}
        unknown = sorted((kinds - set(_KINDS)) | (formats - _FORMATS))
        if unknown:
            raise UnknownPart(", ".join(unknown))

    def __call__(self, arguments: Sequence[Any]) -> dict[int, torch.Tensor]:
        """Computes it.

        Args:
            arguments: by place: inputs, and anything where an output stands.

        Returns:
            Its outputs by their place among the arguments.
        """
        values = _Values(self._constants)
        for place, number, flags in self._externals:
            if flags & _INPUT:
                values[number] = arguments[place]
        for node in self.nodes:
            fields = node["xnode_union"]
            result = _KINDS[node["xnode_union_type"]](fields, values)
            if node["xnode_union_type"] == "XNNConvert":
                result = self._in_steps(fields, result)
            bounds = node.get("output_min_max")
            if bounds is not None:
                result = result.clamp(bounds["output_min"], bounds["output_max"])
            values[fields["output_id"]] = result
        return {
            place: values[number] for place, number, flags in self._externals if flags & _OUTPUT
        }

    def _in_steps(self, fields: Node, x: torch.Tensor) -> torch.Tensor:
        """What a conversion from or to bytes with one scale makes of x, without rounding."""
        for field, towards in (("input_id", False), ("output_id", True)):
            union = self.values[fields[field]]
            if union.get("tensor_value", union)["datatype"] == _BYTES:
                scale, zero = (union["quant_params"][name] for name in ("scale", "zero_point"))
                x = x / scale + zero if towards else (x - zero) * scale
        return x


def _decoded(blob: bytes) -> dict[str, Any]:
    """The graph as JSON, by the schema that ExecuTorch ships."""
    header = XNNHeader.from_bytes(blob[: XNNHeader.EXPECTED_LENGTH])
    end = header.flatbuffer_offset + header.flatbuffer_size
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schema.fbs").write_bytes(_get_schema_bytes())
        (folder / "graph.bin").write_bytes(blob[header.flatbuffer_offset : end])
        paths = (str(folder / file) for file in ("schema.fbs", "graph.bin"))
        _flatc_decompile(name, *paths, ["--raw-binary"])
        text = (folder / "graph.json").read_text(encoding="utf-8")
    # flatc writes infinity as C does, JSON's readers want JavaScript's word.
    return json.loads(re.sub(r": (-?)inf\b", r": \1Infinity", text))


def _constant(
    union: dict[str, Any], tensor: dict[str, Any], data: Callable[[int], torch.Tensor]
) -> torch.Tensor:
    """A constant as numbers, float32.

    Args:
        union, tensor: the value, and what it has in common with values that aren't quantized.
        data: the bytes of a constant.
    """
    kind, shape = tensor["datatype"], tensor["dims"]
    raw = data(tensor["constant_buffer_idx"])
    quantization = union.get("quant_params", {})
    if kind == "xnn_datatype_fp32":
        return raw.view(torch.float32).reshape(shape)
    if kind == "xnn_datatype_qbint4":  # two codes of 0 to 15 a byte, the earlier one low
        codes = torch.stack([raw & 15, raw >> 4], dim=-1).float() - 8
        groups = codes.reshape(shape[0], -1, quantization["group_size"])
        scale = data(quantization["scale_buffer_idx"]).view(torch.bfloat16).float()
        return (groups * scale.reshape(*groups.shape[:2], 1)).reshape(shape)
    assert kind == "xnn_datatype_qcint8", kind  # `FORMATS`
    scale = data(quantization["scale_buffer_idx"]).view(torch.float32)
    return raw.view(torch.int8).float().reshape(shape) * scale[:, None]


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Node, Values], Any]:
    return lambda node, values: function(values[node["input_id"]])


def _binary(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> Callable[[Node, Values], torch.Tensor]:
    return lambda node, values: function(values[node["input1_id"]], values[node["input2_id"]])


def _linear(node: Node, values: Values) -> torch.Tensor:
    weight = values[node["filter_id"]]
    bias = None if node["bias_id"] == _NONE else values[node["bias_id"]]
    if node["flags"] & _TRANSPOSED:
        weight = weight.T
    return functional.linear(values[node["input1_id"]], weight, bias)


def _batched(node: Node, values: Values) -> torch.Tensor:
    other = values[node["input2_id"]]
    return values[node["input1_id"]] @ (other.mT if node["flags"] & _TRANSPOSED else other)


def _reshaped(node: Node, values: Values) -> torch.Tensor:
    """A size of 0 is the one that follows from the others."""
    return values[node["input_id"]].reshape([size or -1 for size in node["new_shape"]])


def _sliced(node: Node, values: Values) -> torch.Tensor:
    result = values[node["input_id"]]
    for axis, (offset, size) in enumerate(zip(node["offsets"], node["sizes"], strict=True)):
        result = result.narrow(axis, offset, size or result.shape[axis] - offset)
    return result


def _joined(count: int) -> Callable[[Node, Values], torch.Tensor]:
    names = [f"input{number}_id" for number in range(1, count + 1)]
    return lambda node, values: torch.cat([values[node[name]] for name in names], node["axis"])


_BYTES = "xnn_datatype_qint8"
"""Of tensors with one scale that the program knows."""

_FORMATS = {"xnn_datatype_fp32", "xnn_datatype_qbint4", "xnn_datatype_qcint8"}
"""Of constants."""

_KINDS: dict[str, Callable[[Node, Values], torch.Tensor]] = {
    "XNNAdd": _binary(torch.add),
    "XNNBatchMatrixMultiply": _batched,
    "XNNClamp": _unary(lambda x: x),
    **{f"XNNConcatenate{count}": _joined(count) for count in range(2, 6)},
    "XNNConvert": _unary(lambda x: x),
    "XNNCopy": _unary(lambda x: x),
    "XNNCos": _unary(torch.cos),
    "XNNDiv": _binary(torch.div),
    "XNNExp": _unary(torch.exp),
    "XNNFullyConnected": _linear,
    "XNNGelu": _unary(functional.gelu),
    "XNNMaximum": _binary(torch.maximum),
    "XNNMinimum": _binary(torch.minimum),
    "XNNMultiply": _binary(torch.mul),
    "XNNNegate": _unary(torch.neg),
    "XNNReciprocalSquareRoot": _unary(torch.rsqrt),
    "XNNSigmoid": _unary(torch.sigmoid),
    "XNNSin": _unary(torch.sin),
    "XNNSoftmax": _unary(lambda x: x.softmax(-1)),
    "XNNSquare": _unary(torch.square),
    "XNNSquareRoot": _unary(torch.sqrt),
    "XNNStaticReshape": _reshaped,
    "XNNStaticSlice": _sliced,
    "XNNStaticTranspose": lambda node, values: values[node["input_id"]].permute(node["perm"]),
    "XNNSubtract": _binary(torch.sub),
    "XNNTanh": _unary(torch.tanh),
}
