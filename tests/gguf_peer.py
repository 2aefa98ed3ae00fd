"""llama.cpp's logits of a file: in a process of its own, since it aborts on some files.

As a program: `gguf_peer.py FILE OUTPUT.npz CONTEXT`, token ids and places in OUTPUT.npz.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def peer_logits(path: Path, ids: np.ndarray, places: list[int], context: int) -> np.ndarray | None:
    """Logits `[places, V]` after the tokens at `places`; None if llama.cpp doesn't take the file.

    Args:
        path: of the file.
        ids: `[T]`.
        places: whose logits are returned.
        context: of llama.cpp, which chooses LongRoPE's factors by it.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "logits.npz"
        np.savez(output, ids=ids, places=places)
        command = [sys.executable, __file__, str(path), str(output), str(context)]
        done = subprocess.run(command, capture_output=True)
        if done.returncode:
            return None
        return np.load(output)["logits"]


def difference(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Relative errors `[places]` of logits `[places, V]`, by their spread."""
    spread = wanted - wanted.mean(-1, keepdims=True)
    return np.linalg.norm(found - wanted, axis=-1) / np.linalg.norm(spread, axis=-1)


def _main(path: str, output: str, context: str) -> None:
    import llama_cpp

    given = np.load(output)
    float32 = llama_cpp.GGML_TYPE_F32
    model = llama_cpp.Llama(
        path,
        n_ctx=int(context),
        n_batch=512,
        n_ubatch=512,
        n_threads=1,
        n_threads_batch=1,
        yarn_ext_factor=-1.0,  # the file's; the library has others
        yarn_attn_factor=-1.0,
        yarn_beta_fast=-1.0,
        yarn_beta_slow=-1.0,
        type_k=float32,
        type_v=float32,
        logits_all=True,
        verbose=False,
    )
    model.eval(given["ids"].tolist())
    np.savez(output, logits=np.array(model.scores)[given["places"]].astype(np.float32))


if __name__ == "__main__":
    _main(*sys.argv[1:])
