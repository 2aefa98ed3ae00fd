"""Reads recorded sessions again, on the CPU that it is given.

    qemu-x86_64 -cpu Haswell python tests/android/check_kernels.py FIXTURES

ONNX Runtime picks its kernels by CPUID: under an emulated CPU it takes those of other machines. An
emulated reading takes seconds, so of the sessions only those are read whose graphs have an operator
that no other one has had.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import onnx
from rounding import largest_difference

Kind = tuple[object, ...]
_DECIDING = {"accuracy_level", "bits", "block_size", "to", "update_rule"}
"""Attributes by which an operator has another kernel."""


def operators(artifact: Path) -> set[Kind]:
    """What the graphs' kernels go by: operators, and the attributes that decide."""
    found: set[Kind] = set()
    for file in artifact.glob("**/*.onnx"):
        for node in onnx.load(file, load_external_data=False).graph.node:
            deciding = {a.name: (a.i, a.s) for a in node.attribute if a.name in _DECIDING}
            found.add((node.domain, node.op_type, *sorted(deciding.items())))
    return found


def chosen(fixtures: Path) -> list[Path]:
    """Folders of sessions that together have every operator, those with most first."""
    every = {file.parent: operators(file.parent) for file in fixtures.glob("sessions/*/steps.json")}
    found, seen = [], set[Kind]()
    for folder in sorted(every, key=lambda folder: (-len(every[folder]), folder.name)):
        if not every[folder] <= seen:
            found.append(folder)
            seen |= every[folder]
    return found


def main(fixtures: Path) -> None:
    folders = chosen(fixtures)
    for folder in folders:
        limit = json.loads((folder / "steps.json").read_text(encoding="utf-8"))["tolerance"]
        off = largest_difference(folder, folder / "artifact")
        print(f"{folder.name}: off by {off:.2e}, limit {limit:.2e}", flush=True)
        if off > limit:
            raise SystemExit(f"{folder.name}: another kernel is too far off")
    if not folders:
        raise SystemExit(f"no recorded session in {fixtures}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} FIXTURES")
    main(Path(sys.argv[1]))
