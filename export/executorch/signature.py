"""Whether the methods of a program take and give what the manifest says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeinfinite.export.checks import Check
from edgeinfinite.runtime_py.manifest import Manifest


def check_signatures(folder: Path, manifest: Manifest) -> list[Check]:
    """`io:METHOD` for each method: number of inputs and outputs, and the sizes that are fixed."""
    from executorch.runtime import Runtime

    checks = []
    for name, spec in manifest.graphs.items():
        program = Runtime.get().load_program(folder / spec.file)
        same = name in program.method_names
        if same:
            found: Any = program.load_method(name).metadata
            same = found.num_inputs() == len(spec.inputs) and all(
                size == wanted or isinstance(wanted, str)
                for index, tensor in enumerate(spec.inputs)
                for size, wanted in zip(
                    found.input_tensor_meta(index).sizes(), tensor.shape, strict=False
                )
            )
        checks.append(Check(f"io:{name}", same, float(same)))
    return checks
