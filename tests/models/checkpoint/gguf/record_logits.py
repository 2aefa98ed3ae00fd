"""Records llama.cpp's logits of the tiny files; to run from the root with PYTHONPATH=tests.

It needs llama-cpp-python (the `bench` extra). With arguments, only files whose labels begin
with one of them are recorded; the others' logits stay. Half precision, whose 0.0003 is far below
the limit.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf_cases import RECORDED
from gguf_peer import peer_logits

RECORD = Path(__file__).with_name("gguf_logits.npz")


def main(*starts: str) -> None:
    known = np.load(RECORD) if starts else {}
    wanted = {case.label for case in RECORDED}
    recorded = {label: known[label] for label in known if label in wanted}
    with tempfile.TemporaryDirectory() as folder:
        for case in (case for case in RECORDED if case.label.startswith(starts or "")):
            path = case.write(Path(folder))
            logits = peer_logits(path, case.ids, case.places, case.context)
            assert logits is not None, case.label
            recorded[case.label] = logits.astype(np.float16)
    np.savez_compressed(RECORD, **recorded)


if __name__ == "__main__":
    main(*sys.argv[1:])
