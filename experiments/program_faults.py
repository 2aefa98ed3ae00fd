"""How many faults the check of an ExecuTorch program sees: random ones are put into what it says.

    python experiments/program_faults.py ARTIFACT [--count N] [--seed N] [--model ID] [--json FILE]

Every fault changes one constant or one operation of the program's XNNPACK parts, as it was read
from the file, by as little as 5 %. Then the program is compared with the checkpoint in exact
arithmetic (`export/executorch/exact/parity.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.export.default_text import default_text
from edgeinfinite.export.executorch.exact.parity import ExactEngine, compare_exactly
from edgeinfinite.export.executorch.exact.program import ExactMethod
from edgeinfinite.export.executorch.exact.xnnpack import XnnpackGraph
from edgeinfinite.export.verify import quantized_reference
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

ZERO = 0x88
"""Two codes that stand for zero."""


@dataclass(frozen=True)
class Part:
    """What a fault may change.

    Args:
        named: the program's constants, by name.
        method: one of its methods.
        graph: the largest of its XNNPACK parts.
    """

    named: dict[str, bytes]
    method: ExactMethod
    graph: XnnpackGraph


Fault = Callable[[Part, np.random.Generator], str | None]
"""Changes something, and says where; None where there is nothing of the kind."""


def _tensor(graph: XnnpackGraph, number: int) -> dict[str, Any]:
    union = graph.values[number]
    return union.get("tensor_value", union)  # type: ignore[no-any-return]


def _picked(graph: XnnpackGraph, random: np.random.Generator) -> tuple[dict[str, Any], int] | None:
    """A product's weight in 4 bits, and its number."""
    numbers = [
        node["xnode_union"]["filter_id"]
        for node in graph.nodes
        if node["xnode_union_type"] == "XNNFullyConnected"
    ]
    numbers = [n for n in numbers if _tensor(graph, n)["datatype"] == "xnn_datatype_qbint4"]
    if not numbers:
        return None
    number = numbers[random.integers(len(numbers))]
    return graph.values[number], number


def _of_scales(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Fault:
    """Scales `[O, groups]`, bfloat16 as float32."""

    def fault(part: Part, random: np.random.Generator) -> str | None:
        graph = part.graph
        picked = _picked(graph, random)
        if picked is None:
            return None
        union, number = picked
        key = graph.keys[union["quant_params"]["scale_buffer_idx"]]
        rows = union["tensor_value"]["dims"][0]
        halves = np.frombuffer(part.named[key], np.uint16).reshape(rows, -1)
        scales = (halves.astype(np.uint32) << 16).view(np.float32)
        changed = change(scales.copy(), random)
        rounded = (changed.view(np.uint32) + 0x8000) >> 16
        part.named[key] = rounded.astype(np.uint16).tobytes()
        return f"weight {number}"

    return fault


def _of_codes(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Fault:
    """Codes `[O, I / 2]`, two a byte."""

    def fault(part: Part, random: np.random.Generator) -> str | None:
        graph = part.graph
        picked = _picked(graph, random)
        if picked is None:
            return None
        union, number = picked
        key = graph.keys[union["tensor_value"]["constant_buffer_idx"]]
        rows = union["tensor_value"]["dims"][0]
        codes = np.frombuffer(part.named[key], np.uint8).reshape(rows, -1).copy()
        part.named[key] = np.ascontiguousarray(change(codes, random)).tobytes()
        return f"weight {number}"

    return fault


def _inputs_lost(codes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    size = max(1, codes.shape[1] // 9)
    start = int(random.integers(codes.shape[1] - size + 1))
    codes[:, start : start + size] = ZERO
    return codes


def _row_lost(codes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    codes[random.integers(len(codes))] = ZERO
    return codes


def _rows_shifted(codes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    chosen = random.choice(len(codes), max(1, len(codes) // 20), replace=False)
    codes[chosen] = np.roll(codes[chosen], 1, axis=1)
    return codes


def _rows_swapped(scales: np.ndarray, random: np.random.Generator) -> np.ndarray:
    one, other = random.choice(len(scales), 2, replace=False)
    scales[[one, other]] = scales[[other, one]]
    return scales


def _vector_off(part: Part, random: np.random.Generator) -> str | None:
    """A vector of the program: a norm's weights."""
    numbers = [
        number
        for number, value in part.method.fixed.items()
        if isinstance(value, torch.Tensor) and value.dim() == 1 and value.is_floating_point()
    ]
    # The scales of the embedding's rows are a vector too.
    shortest = min(len(part.method.fixed[number]) for number in numbers)
    numbers = [number for number in numbers if len(part.method.fixed[number]) == shortest]
    number = numbers[random.integers(len(numbers))]
    weights = part.method.fixed[number].clone()
    weights[random.choice(len(weights), max(1, len(weights) // 10), replace=False)] *= 1.05
    part.method.fixed[number] = weights
    return f"vector {number}"


def _other_operand(part: Part, random: np.random.Generator) -> str | None:
    """A sum takes another value of the same shape that stands already."""
    graph = part.graph
    sums = [n for n, one in enumerate(graph.nodes) if one["xnode_union_type"] == "XNNAdd"]
    for place in random.permutation(sums).tolist():
        fields = graph.nodes[place]["xnode_union"]
        shape = _tensor(graph, fields["input1_id"])["dims"]
        taken = {fields["input1_id"], fields["input2_id"]}
        others = [
            node["xnode_union"]["output_id"]
            for node in graph.nodes[:place]
            if node["xnode_union_type"] != "XNNConvert"
            and _tensor(graph, node["xnode_union"]["output_id"])["dims"] == shape
            and node["xnode_union"]["output_id"] not in taken
        ]
        if others:
            fields["input1_id"] = others[random.integers(len(others))]
            return f"operation {place}"
    return None


def _left_out(part: Part, random: np.random.Generator) -> str | None:
    """A function of one value passes it on."""
    graph = part.graph
    kinds = ("XNNSigmoid", "XNNSoftmax", "XNNSquare", "XNNReciprocalSquareRoot", "XNNNegate")
    places = [n for n, one in enumerate(graph.nodes) if one["xnode_union_type"] in kinds]
    if not places:
        return None
    place = int(random.choice(places))
    graph.nodes[place]["xnode_union_type"] = "XNNCopy"
    return f"operation {place}"


FAULTS: dict[str, Fault] = {
    "a weight 5 % too large": _of_scales(lambda scales, _: scales * np.float32(1.05)),
    "a ninth of a layer's inputs lost": _of_codes(_inputs_lost),
    "a row of a weight lost": _of_codes(_row_lost),
    "scales of two rows swapped": _of_scales(_rows_swapped),
    "codes of a twentieth of the rows shifted": _of_codes(_rows_shifted),
    "a norm 5 % off in a tenth of its channels": _vector_off,
    "a sum of another value": _other_operand,
    "a function left out": _left_out,
}


class ProgramFaults:
    """An artifact, the checkpoint that it was made from, and what they agree on.

    Args:
        folder: the artifact, of the back end executorch.
        model: the checkpoint; None takes the manifest's.
    """

    def __init__(self, folder: Path, model: str | None = None) -> None:
        manifest = read_manifest(folder)
        self._reference = quantized_reference(folder, manifest, model)
        self._program = ExactEngine(folder, manifest)
        self._ids = load_tokenizer(folder).encode_text(default_text())[:64]

    def passes(self) -> bool:
        """Whether the check finds nothing."""
        state = self._reference.new_state()
        checks = compare_exactly(self._program, self._reference, [state], iter(self._ids))
        return all(check.passed for check in checks)

    def finds(self, kind: str, random: np.random.Generator) -> tuple[bool, str] | None:
        """Whether a fault is found, and where it is; None where there is no place for it."""
        name = list(self._program.methods)[random.integers(2)]
        method = self._program.methods[name]
        graph = max(method.delegates, key=lambda one: len(one.nodes))
        part = Part(self._program.program.named, method, graph)
        with _restored(part):
            where = FAULTS[kind](part, random)
            if where is None:
                return None
            try:
                return not self.passes(), f"{name}, {where}"
            except (RuntimeError, IndexError) as error:  # shapes that don't fit: found as well
                return True, f"{name}, {where}: {error}"


@contextlib.contextmanager
def _restored(part: Part) -> Iterator[None]:
    named, fixed = dict(part.named), dict(part.method.fixed)
    nodes = copy.deepcopy(part.graph.nodes)
    try:
        yield
    finally:
        part.named.update(named)
        part.method.fixed.update(fixed)
        part.graph.nodes = nodes


def main() -> None:
    """Runs the faults and prints how many of each kind were found."""
    torch.set_num_threads(1)  # threads that wait for each other are slow on a busy machine
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    check = ProgramFaults(arguments.artifact, arguments.model)
    assert check.passes()
    random = np.random.default_rng(arguments.seed)
    rows, tried, found = [], Counter[str](), Counter[str]()
    for number in tqdm(range(arguments.count), unit="fault"):
        kind = list(FAULTS)[number % len(FAULTS)]
        result = check.finds(kind, random)
        if result is None:
            continue
        tried[kind] += 1
        found[kind] += result[0]
        rows.append({"fault": kind, "where": result[1], "found": result[0]})
    for kind, count in tried.items():
        print(f"{found[kind]:>4} of {count:<4} {kind}")
    print(f"{found.total()} of {tried.total()}")
    if arguments.json:
        recipe = read_manifest(arguments.artifact).quantization.recipe
        arguments.json.write_text(json.dumps({"recipe": recipe, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
