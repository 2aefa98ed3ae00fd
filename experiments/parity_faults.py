"""How many faults the check of an export sees: random ones are put into an artifact's graph.

    python experiments/parity_faults.py ARTIFACT [--count 200] [--seed 0] [--model ID] [--json FILE]

Every fault changes one weight, norm, attribute or connection of `prefill_segment.onnx`, as a wrong
pass or a wrong kernel would, by as little as 5 %. Each changed graph is compared with the
checkpoint, operation by operation (`export/parity/operations.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from edgeinfinite.artifact.manifest import Manifest, cache_type_of, read_manifest
from edgeinfinite.artifact.tensors import PREFILL
from edgeinfinite.export.default_text import default_text
from edgeinfinite.export.onnx.files import WEIGHTS_FILE
from edgeinfinite.export.onnx.observe import ObservedGraph
from edgeinfinite.export.parity.operations import Observed, OperationParity, checks_of
from edgeinfinite.export.verify import quantized_reference
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

Fault = Callable[[onnx.GraphProto, Path, np.random.Generator], str | None]
"""Changes a graph, and says where; None where the graph has nothing of the kind."""


def _tensor(graph: onnx.GraphProto, name: str, folder: Path) -> np.ndarray:
    value = next(tensor for tensor in graph.initializer if tensor.name == name)
    return numpy_helper.to_array(value, base_dir=str(folder)).copy()


def _replace(graph: onnx.GraphProto, name: str, array: np.ndarray) -> None:
    value = next(tensor for tensor in graph.initializer if tensor.name == name)
    value.CopyFrom(numpy_helper.from_array(array, name))


def _scales(graph: onnx.GraphProto, random: np.random.Generator) -> tuple[str, str]:
    """The name of a random product's scales, and what it is called."""
    nodes = [node for node in graph.node if node.op_type == "MatMulNBits"]
    node = nodes[random.integers(len(nodes))]
    made_by = {output: other for other in graph.node for output in other.output}
    name = node.input[2]
    return (made_by[name].input[0] if name in made_by else name), node.input[1]


def _of_scales(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Fault:
    def fault(graph: onnx.GraphProto, folder: Path, random: np.random.Generator) -> str:
        name, where = _scales(graph, random)
        array = _tensor(graph, name, folder)
        changed = change(array.astype(np.float32), random).astype(array.dtype)
        _replace(graph, name, changed)
        return where

    return fault


def _larger(scales: np.ndarray, _: np.random.Generator) -> np.ndarray:
    return scales * np.float32(1.05)


def _input_columns_lost(scales: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A ninth of the inputs: a head, where the product follows attention."""
    width = max(1, scales.shape[1] // 9)
    start = random.integers(scales.shape[1] - width + 1)
    scales[:, start : start + width] = 0
    return scales


def _row_lost(scales: np.ndarray, random: np.random.Generator) -> np.ndarray:
    scales[random.integers(len(scales))] = 0
    return scales


def _rows_swapped(scales: np.ndarray, random: np.random.Generator) -> np.ndarray:
    one, other = random.choice(len(scales), 2, replace=False)
    scales[[one, other]] = scales[[other, one]]
    return scales


def _codes_shifted(graph: onnx.GraphProto, folder: Path, random: np.random.Generator) -> str | None:
    """The codes of some rows stand one row too far down."""
    stored = {tensor.name for tensor in graph.initializer}
    nodes = [n for n in graph.node if n.op_type == "MatMulNBits" and n.input[1] in stored]
    if not nodes:
        return None
    name = nodes[random.integers(len(nodes))].input[1]
    codes = _tensor(graph, name, folder)
    count = max(2, len(codes) // 20)
    start = random.integers(len(codes) - count + 1)
    codes[start : start + count] = np.roll(codes[start : start + count], 1, 0)
    _replace(graph, name, codes)
    return name


def _norm_off(graph: onnx.GraphProto, folder: Path, random: np.random.Generator) -> str:
    """5 % in a tenth of a norm's channels."""
    kinds = {"SimplifiedLayerNormalization": 1, "SkipSimplifiedLayerNormalization": 2}
    norms = [node.input[kinds[node.op_type]] for node in graph.node if node.op_type in kinds]
    name = norms[random.integers(len(norms))]
    weight = _tensor(graph, name, folder)
    weight[random.choice(len(weight), max(1, len(weight) // 10), replace=False)] *= 1.05
    _replace(graph, name, weight)
    return name


def _attribute(operator: str, name: str, change: Callable[[Any], Any]) -> Fault:
    def fault(graph: onnx.GraphProto, _: Path, random: np.random.Generator) -> str | None:
        nodes = [node for node in graph.node if node.op_type == operator]
        if not nodes:
            return None
        node = nodes[random.integers(len(nodes))]
        for attribute in node.attribute:
            if attribute.name == name:
                value = onnx.helper.get_attribute_value(attribute)
                attribute.CopyFrom(onnx.helper.make_attribute(name, change(value)))
                return f"{operator} {node.output[0]}"
        return None

    return fault


def _other_activation(graph: onnx.GraphProto, _: Path, random: np.random.Generator) -> str | None:
    nodes = [node for node in graph.node if node.op_type == "Sigmoid"]
    if not nodes:
        return None
    node = nodes[random.integers(len(nodes))]
    node.op_type = "HardSigmoid"
    return f"Sigmoid {node.output[0]}"


def _sum_without_the_stream(
    graph: onnx.GraphProto, _: Path, random: np.random.Generator
) -> str | None:
    """A residual sum that adds what a layer gave to itself."""
    nodes = [node for node in graph.node if node.op_type == "SkipSimplifiedLayerNormalization"]
    if not nodes:
        return None
    node = nodes[random.integers(len(nodes))]
    node.input[0] = node.input[1]
    return f"residual sum {node.output[0]}"


FAULTS: dict[str, Fault] = {
    "a weight 5 % too large": _of_scales(_larger),
    "a ninth of a layer's inputs lost": _of_scales(_input_columns_lost),
    "a row of a weight lost": _of_scales(_row_lost),
    "scales of two rows swapped": _of_scales(_rows_swapped),
    "codes of a twentieth of the rows shifted": _codes_shifted,
    "a norm 5 % off in a tenth of its channels": _norm_off,
    "attention's scale 5 % off": _attribute("GroupQueryAttention", "scale", lambda v: v * 1.05),
    "another activation": _other_activation,
    "a residual sum without the stream": _sum_without_the_stream,
}


def with_fault(folder: Path, fault: Fault, random: np.random.Generator, target: Path) -> str | None:
    """Writes a changed `prefill_segment.onnx` into `target`, where the weights are as well.

    Returns:
        Where the fault is; None where the graph has nothing of the kind.
    """
    file = read_manifest(folder).graphs[PREFILL].file
    model = onnx.load(folder / file, load_external_data=False)
    where = fault(model.graph, folder, random)
    if where is not None:
        onnx.save(model, target / file)
    return where


class FaultCheck:
    """An artifact, the checkpoint that it was made from, and what they agree on.

    Args:
        folder: the artifact, of the back end onnx.
        model: the checkpoint; None takes the manifest's.
    """

    def __init__(self, folder: Path, model: str | None = None) -> None:
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        self.reference = quantized_reference(folder, self.manifest, model)
        self.observed = ObservedGraph(folder, self.manifest)
        self._copy = tempfile.TemporaryDirectory(dir=folder.parent)  # onnx refuses links
        shutil.copyfile(folder / WEIGHTS_FILE, Path(self._copy.name) / WEIGHTS_FILE)
        self._ids = load_tokenizer(folder).encode_text(default_text())[:64]

    def passes(self, observed: Observed) -> bool:
        """Whether the check finds nothing in an artifact."""
        rounds = cache_type_of(self.manifest) != "float32"
        parity = OperationParity(observed, self.reference, rounds=rounds)
        state = self.reference.new_state()
        errors = parity.compare_from(state, self.reference.new_state, iter(self._ids))
        return all(check.passed for check in checks_of(errors))

    def finds(self, fault: Fault, random: np.random.Generator) -> tuple[bool, str] | None:
        """Whether a fault is found, and where it is; None where there is no place for it."""
        target = Path(self._copy.name)
        where = with_fault(self.folder, fault, random, target)
        if where is None:
            return None
        changed = ObservedGraph(target, self.manifest)
        return not self.passes(changed), where


def main() -> None:
    """Runs the faults and prints how many of each kind were found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    check = FaultCheck(arguments.artifact, arguments.model)
    assert check.passes(check.observed)
    random = np.random.default_rng(arguments.seed)
    rows, tried, found = [], Counter[str](), Counter[str]()
    for number in range(arguments.count):
        kind = list(FAULTS)[number % len(FAULTS)]
        result = check.finds(FAULTS[kind], random)
        if result is None:
            continue
        tried[kind] += 1
        found[kind] += result[0]
        rows.append({"fault": kind, "where": result[1], "found": result[0]})
        print("found " if result[0] else "MISSED", kind, result[1], sep="\t", flush=True)
    for kind, count in tried.items():
        print(f"{found[kind]:4} of {count:4}  {kind}")
    print(f"{found.total():4} of {tried.total():4}  of all")
    if arguments.json:
        document = {"recipe": dataclasses.asdict(check.manifest.quantization)["recipe"]}
        arguments.json.write_text(json.dumps(document | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
