"""An NPU's emulator at some tokens of a text, each from the state that the CPU has there.

    python experiments/npu/probes.py ARTIFACT TEXT REFERENCE PROMPT --at 640,700,768,832,898

The CPU reads the text, prompt and then token by token. `agreement.py run` has written `REFERENCE`
with a float32 artifact, and `PROMPT`, its prompt.session, with this one. At the given tokens the
emulator computes the same `decode_step` from a copy of the state. A row: the token, compressions
before it, the error of the logits against the CPU's graph (relative, over their spread), whether
the greedy choice is that of the float32 artifact, its Kullback-Leibler divergence from it, and both
losses of the next token.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    """Of logits `[V]`, float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max()
    return wide - np.log(np.exp(wide).sum())


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("artifact", "text", "reference", "prompt"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--at", type=lambda text: [int(n) for n in text.split(",")], required=True)
    arguments = parser.parse_args()
    text = load_tokenizer(arguments.artifact).encode_text(read_text_file(arguments.text)[:40_000])
    emulator = load_engine(arguments.artifact, emulate=True)
    session, _ = load_session(load_engine(arguments.artifact), arguments.prompt)
    state, probed = None, set(arguments.at)
    while probed:
        at = session.tokens_read
        if at + 1 in probed and not session._policy.is_due(session):
            state = session.state.copy()
        logits = session.append([text[at]])
        if state is None:
            continue
        start = time.perf_counter()
        emulated = emulator.decode_step(np.array([[text[at]]]), state)
        seconds, state = time.perf_counter() - start, None
        probed.discard(at + 1)
        spread = np.linalg.norm(logits - logits.mean())
        error = np.linalg.norm(emulated - logits) / spread
        ours = log_probabilities(emulated)
        theirs = log_probabilities(np.load(arguments.reference / f"{at + 1:05}.npy"))
        divergence = (np.exp(theirs) * (theirs - ours)).sum()
        same, following = ours.argmax() == theirs.argmax(), text[at + 1]
        print(
            f"{at + 1} {session.compressions} error {error:.4f} same {int(same)} "
            f"KL {divergence:.5f} nats {-ours[following]:.3f} {-theirs[following]:.3f} "
            f"({seconds:.1f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
