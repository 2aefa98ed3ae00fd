"""What experts in 4 bits take in memory, packed by ONNX Runtime and not, and how long a token does.

    python experiments/experts_memory.py [--threads 2] [--rounds 60]

The random OLMoE of `experts_decode.py` with 4 of 32 experts. Linux: memory is the anonymous memory
that opening the artifact and reading a text add to the process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime
from experts_decode import CHOSEN, READ, exported

from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.session.session import Session

_InferenceSession = onnxruntime.InferenceSession


def main() -> None:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "int4"
        manifest = exported(CHOSEN, "int4", folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"artifact: {size / 1e6:.0f} MB")
        for way, opened in (("packed", _InferenceSession), ("not packed", _not_packed)):
            with mock.patch.object(onnxruntime, "InferenceSession", opened):
                before = anonymous()
                session = Session(OnnxEngine(folder, manifest, threads=options.threads))
                loaded = anonymous() - before
                read, token = times(session, options.rounds)
            print(
                f"{way}: {read:.0f} ms for {READ} tokens, {token:.1f} ms a token, anonymous memory "
                f"{loaded / 1e6:.0f} MB opened, {(anonymous() - before) / 1e6:.0f} after the text"
            )
            del session


def times(session: Session, rounds: int) -> tuple[float, float]:
    """Milliseconds for a text, and for a token after it, the median."""
    random, found = np.random.default_rng(0), []
    text = random.integers(3, 1024, READ).tolist()
    for tokens in [text, *random.integers(3, 1024, (rounds, 1)).tolist()]:
        begun = time.perf_counter()
        session.append(tokens)
        found.append(1e3 * (time.perf_counter() - begun))
    return found[0], median(found[1:])


def _not_packed(model: Any, options: Any, providers: Any) -> Any:
    options.add_session_config_entry("session.disable_prepacking", "1")
    return _InferenceSession(model, options, providers)


def anonymous() -> int:
    """Bytes of this process's memory that lie in no file."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


if __name__ == "__main__":
    main()
