"""Measures how far our logits of the tiny files are from llama.cpp's; to run from the root with
PYTHONPATH=tests.

    python tests/models/checkpoint/gguf/record_errors.py benchmarks/trust/gguf.json [NAME ...]

It needs llama-cpp-python (the `bench` extra) and takes minutes. A row has one file's relative
errors after the tokens at `places`. With names of `tiny_gguf.ARCHITECTURES`, rows of others stay.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import torch
from gguf_cases import EVERY
from gguf_peer import difference, peer_logits

from edgeinfinite.models.checkpoint.loading import load_backbone


def main(output: Path, names: list[str]) -> None:
    old = json.loads(output.read_text(encoding="utf-8")) if names else []
    rows = [row for row in old if row["architecture"] not in names]
    with tempfile.TemporaryDirectory() as folder:
        for case in (case for case in EVERY if not names or case.name in names):
            path = case.write(Path(folder))
            theirs = peer_logits(path, case.ids, case.places, case.context)
            assert theirs is not None, f"llama.cpp refuses {case.label}"
            with torch.no_grad():
                model = load_backbone(str(path)).model
                ours = model(torch.from_numpy(case.ids)[None]).logits[0, case.places].numpy()
            errors = [float(f"{error:.2g}") for error in difference(ours, theirs)]
            rows.append({"architecture": case.name, "file": case.label, "places": case.places})
            rows[-1]["errors"] = errors
            path.unlink()
            print(json.dumps(rows[-1]), file=sys.stderr)
    order = {case.label: number for number, case in enumerate(EVERY)}
    rows.sort(key=lambda row: order[row["file"]])
    lines = ",\n".join(f" {json.dumps(row)}" for row in rows)
    output.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
