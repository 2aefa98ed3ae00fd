"""Norms of M and z after every compression of a long text, as rows.

python experiments/memory_audit.py ARTIFACT --data FOLDER --tokens 100000 --json audit.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from edgeinfinite.rows_file import write_rows
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def norms(memory: np.ndarray, memory_norm: np.ndarray) -> dict[str, float | bool]:
    """Figures of M `[L, K, D, D]` and z `[L, K, D]`, each over layers and KV heads."""
    frobenius = np.sqrt((memory.astype(np.float64) ** 2).sum((2, 3)))
    euclidean = np.sqrt((memory_norm.astype(np.float64) ** 2).sum(2))
    return {
        "memory_norm_mean": float(frobenius.mean()),
        "memory_norm_max": float(frobenius.max()),
        "memory_abs_max": float(np.abs(memory).max()),
        "z_norm_mean": float(euclidean.mean()),
        "z_norm_max": float(euclidean.max()),
        "z_min": float(memory_norm.min()),
        "finite": bool(np.isfinite(memory).all() and np.isfinite(memory_norm).all()),
    }


def main() -> None:
    """Reads the text with the artifact and writes a row for every compression."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="text files, joined")
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    engine = load_engine(arguments.artifact, threads=arguments.threads)
    text = "\n".join(path.read_text(encoding="utf-8") for path in arguments.data)
    tokens = load_tokenizer(arguments.artifact).encode_text(text)[: arguments.tokens]
    session, rows = Session(engine), []
    geometry = engine.geometry
    for start in range(0, len(tokens), geometry.segment_length):
        before = session.compressions
        session.append(tokens[start : start + geometry.segment_length])
        if session.compressions > before:
            arrays = session.state.arrays
            row = {"tokens": session.tokens_read, "compressions": session.compressions}
            rows.append(row | norms(arrays["memory"], arrays["memory_norm"]))
            print(rows[-1], flush=True)
    if arguments.json:
        write_rows(arguments.json, "memory_audit", rows)


if __name__ == "__main__":
    main()
