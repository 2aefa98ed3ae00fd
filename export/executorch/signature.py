"""Checks that the inputs and outputs of a program's methods are those of the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import GraphSpec
from edgeinfinite.export.parity.checks import Check


def check_signatures(folder: Path, manifest: Manifest) -> list[Check]:
    """`io:METHOD` for each method: number of inputs and outputs, and the sizes that are fixed."""
    from executorch.extension.pybindings import portable_lib

    checks = []
    for name, spec in manifest.graphs.items():
        program = portable_lib._load_program(str(folder / spec.file))
        methods = {program.get_method_name(i) for i in range(program.num_methods())}
        same = name in methods and _is_as_written(program.method_meta(name), spec)
        checks.append(Check(f"io:{name}", same, float(same)))
    return checks


def _is_as_written(found: Any, spec: GraphSpec) -> bool:
    inputs = [found.input_tensor_meta(i).sizes() for i in range(found.num_inputs())]
    outputs = [found.output_tensor_meta(i).sizes() for i in range(found.num_outputs())]
    return _fit(inputs, [tensor.shape for tensor in spec.inputs]) and _fit(
        outputs, [tensor.shape for tensor in spec.outputs]
    )


def _fit(found: list[Any], written: list[tuple[int | str, ...]]) -> bool:
    """Whether ranks and fixed sizes are equal; a named size may have any value."""
    return len(found) == len(written) and all(
        len(sizes) == len(shape)
        and all(
            isinstance(want, str) or size == want for size, want in zip(sizes, shape, strict=True)
        )
        for sizes, shape in zip(found, written, strict=True)
    )
