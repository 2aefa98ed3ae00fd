"""Writes graphs to files. All graphs share one `weights.data`, which holds each weight once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx
import onnx_ir as ir

from edgeinfinite.artifact.looked_up import WEIGHTS_FILE
from edgeinfinite.export.onnx.passes.int8_prefill import keep_few_tokens_way

_INLINE_BYTES = 1024
"""Smaller tensors stay in the graph's own file: onnxruntime reads shapes and axes there."""

_ALIGNMENT = 64
"""A cache line: onnxruntime maps the file, tensors may start anywhere in a page."""


class Rows(ir.Tensor):
    """Some rows of a tensor, which are a range of its bytes in `weights.data`.

    Args:
        whole: `[V, ...]`; a row takes whole bytes.
        rows: which.
        name: of the new tensor.
    """

    def __init__(self, whole: ir.TensorProtocol, rows: slice, name: str) -> None:
        array = whole.numpy()[rows]
        super().__init__(array, whole.dtype, shape=ir.Shape(array.shape), name=name)
        self.whole, self.first = whole, rows.start


class WeightsFile:
    """Writes tensors one after another into `weights.data`; equal bytes are written once.

    Args:
        folder: where `weights.data` is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / WEIGHTS_FILE).open("wb")
        self._offsets: dict[bytes, int] = {}

    def __enter__(self) -> WeightsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def save(self, model: ir.Model, file: str) -> None:
        """Moves a graph's tensors here and writes the graph beside it, without paths and notes.

        Args:
            model: changed in place; its initializers point into `weights.data` afterwards.
            file: name of the graph's file.
        """
        _forget_origin(model)
        wholes: dict[int, tuple[ir.TensorProtocol, int]] = {}
        for value in model.graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and tensor.nbytes > _INLINE_BYTES:
                value.const_value = self._store(tensor, value.name or "", wholes)
        ir.save(model, self._folder / file)

    def _store(
        self, tensor: ir.TensorProtocol, name: str, wholes: dict[int, tuple[ir.TensorProtocol, int]]
    ) -> ir.ExternalTensor:
        """The tensor's place in the file; `wholes` has those whose rows were stored, by `id`."""
        if isinstance(tensor, Rows):
            whole = tensor.whole
            if id(whole) not in wholes:
                wholes[id(whole)] = whole, self._offset(whole)
            row_bytes = whole.nbytes // whole.shape.numpy()[0]
            offset = wholes[id(whole)][1] + tensor.first * row_bytes
        else:
            offset = self._offset(tensor)
        return ir.ExternalTensor(
            WEIGHTS_FILE,
            offset,
            tensor.nbytes,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=name,
            base_dir=self._folder,
        )

    def _offset(self, tensor: ir.TensorProtocol) -> int:
        """Where the tensor's bytes begin; they are written if they aren't there."""
        data = tensor.tobytes()
        digest = hashlib.sha256(data).digest()
        if digest not in self._offsets:
            self._file.write(b"\0" * (-self._file.tell() % _ALIGNMENT))
            self._offsets[digest] = self._file.tell()
            self._file.write(data)
        return self._offsets[digest]


def fix_tokens(source: Path, target: Path) -> None:
    """Writes a copy of a graph for exactly one token; the copy uses the same tensors.

    Args:
        source: `prefill_segment`, whose `tokens` are `[1, T]`.
        target: file for `decode_step`.
    """
    model = onnx.load(source, load_external_data=False)
    tokens = next(value for value in model.graph.input if value.name == "tokens")
    tokens.type.tensor_type.shape.dim[1].dim_value = 1
    keep_few_tokens_way(model)
    onnx.save(model, target)


def _forget_origin(model: ir.Model) -> None:
    """Drops what the exporter noted about source files (paths of this machine) and shapes.

    Types and shapes between the nodes are nearly half of a graph's file; onnxruntime infers them.
    """
    outputs = {
        value for graph in (model.graph, *model.graph.subgraphs()) for value in graph.outputs
    }
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    model.doc_string = model.graph.doc_string = None
    for node in model.graph.all_nodes():
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            value.metadata_props.clear()
            value.doc_string = None
            if value not in outputs:
                value.type = value.shape = None
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        value.metadata_props.clear()
        value.doc_string = None
