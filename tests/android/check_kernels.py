"""Reads the recorded sessions again, on the CPU that it is given.

    qemu-x86_64 -cpu Haswell python tests/android/check_kernels.py FIXTURES

ONNX Runtime picks its kernels by CPUID: under an emulated CPU it takes those of other machines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rounding import largest_difference


def main(fixtures: Path) -> None:
    found = 0
    for steps in sorted(fixtures.glob("sessions/*/steps.json")):
        limit = json.loads(steps.read_text(encoding="utf-8"))["tolerance"]
        found += 1
        off = largest_difference(steps.parent, steps.parent / "artifact")
        print(f"{steps.parent.name}: off by {off:.2e}, limit {limit:.2e}", flush=True)
        if off > limit:
            raise SystemExit(f"{steps.parent.name}: another kernel is too far off")
    if not found:
        raise SystemExit(f"no recorded session in {fixtures}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} FIXTURES")
    main(Path(sys.argv[1]))
