"""The largest magnitudes of the state's tensors while an ONNX artifact reads a long text.

    python experiments/npu/ranges.py ARTIFACT TEXT... --tokens 131072

float16 holds 65,504. M and z are float32 sums that grow with the text; what a graph for the NPU
gets of them (`scaled_memory`) must not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.fixed_graph import scaled_memory
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import State
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

_STEP = 1024


def largest(state: State) -> dict[str, float]:
    """The largest magnitude of each kind of tensor; of caches the slots in use."""
    found: dict[str, float] = {}
    for spec in state.specs:
        used = state.in_use(spec)
        if spec.role in ("length", "has_memory") or not used.size:
            continue
        found[spec.role] = max(found.get(spec.role, 0.0), float(np.abs(used).max()))
    if "memory" in state.arrays:
        scaled = scaled_memory(state.arrays["memory"], state.arrays["memory_norm"])
        found |= {
            name: float(np.abs(part).max())
            for name, part in zip(("scaled_memory", "scaled_norm"), scaled, strict=True)
        }
    return found


def main() -> None:
    """Prints one row for each power of two from 1,024 tokens on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=131_072)
    parser.add_argument("--session", type=Path, help="goes on from here after an interruption")
    arguments = parser.parse_args()
    tokenizer = load_tokenizer(arguments.artifact)
    ids: list[int] = []
    for text in arguments.texts:
        ids += tokenizer.encode_text(read_text_file(text))
    print(f"{len(ids)} tokens of text, again from the start where they end", flush=True)
    engine, saved = load_engine(arguments.artifact), arguments.session
    goes_on = saved is not None and saved.exists()
    session = load_session(engine, saved)[0] if goes_on else Session(engine)
    worst: dict[str, float] = {}
    while session.tokens_read < arguments.tokens:
        at = session.tokens_read % len(ids)
        session.append(ids[at : at + _STEP])
        now = largest(session.state)
        worst = {name: max(worst.get(name, 0.0), now[name]) for name in now}
        if session.tokens_read & (session.tokens_read - 1) == 0:
            row = " ".join(f"{name} {now[name]:.4g} ({worst[name]:.4g})" for name in now)
            print(f"{session.tokens_read:>7} {session.compressions:>5} {row}", flush=True)
        if saved is not None and session.tokens_read % (8 * _STEP) == 0:
            save_session(session, saved)


if __name__ == "__main__":
    main()
