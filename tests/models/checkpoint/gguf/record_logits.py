"""Records llama.cpp's logits of the tiny files; to run from the root with PYTHONPATH=tests.

It needs llama-cpp-python (the `bench` extra). Half precision, whose 0.0003 is far below the limit.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from gguf_cases import RECORDED
from gguf_peer import peer_logits

RECORD = Path(__file__).with_name("gguf_logits.npz")


def main() -> None:
    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in RECORDED:
            path = case.write(Path(folder))
            logits = peer_logits(path, case.ids, case.places, case.context)
            assert logits is not None, case.label
            recorded[case.label] = logits.astype(np.float16)
    np.savez_compressed(RECORD, **recorded)


if __name__ == "__main__":
    main()
