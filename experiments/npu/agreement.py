"""What an NPU's emulator computes, token by token, against another artifact of the same model.

    python experiments/npu/agreement.py run ARTIFACT TEXT OUT [--emulate] [--tokens 262]
    python experiments/npu/agreement.py compare OUT REFERENCE

`run` reads the first tokens as a prompt and the others one by one, and keeps the logits of each.
An interrupted run goes on where it was: the emulator takes seconds for a token. With
`--prompt-from`, a folder of another run of the same artifact, it begins after that run's prompt.
`compare` prints the loss of both, the share of equal greedy choices, and the Kullback-Leibler
divergence.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import numpy as np

from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.answer.logprobs import log_probabilities
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def run(arguments: argparse.Namespace) -> None:
    """Writes `OUT/NNNNN.npy`, the logits after the token of that number, and `OUT/now.session`."""
    out: Path = arguments.out
    out.mkdir(exist_ok=True)
    text = load_tokenizer(arguments.artifact).encode_text(read_text_file(arguments.text)[:40_000])
    last = arguments.warm_up + arguments.tokens
    np.save(out / "tokens.npy", np.array(text[: last + 1]))
    start = time.perf_counter()
    engine = load_engine(arguments.artifact, emulate=arguments.emulate)
    print(f"opened in {time.perf_counter() - start:.1f} s", flush=True)
    saved = out / "now.session"
    if arguments.prompt_from and not saved.exists():
        shutil.copy(arguments.prompt_from / "prompt.session", saved)
    session = load_session(engine, saved)[0] if saved.exists() else Session(engine)
    while session.tokens_read < last:
        start, at = time.perf_counter(), session.tokens_read
        step = min(engine.chunk_length, arguments.warm_up - at) if at < arguments.warm_up else 1
        logits = session.append(text[at : at + step])
        if session.tokens_read >= arguments.warm_up:
            np.save(out / f"{session.tokens_read:05}.npy", logits)
        if session.tokens_read == arguments.warm_up:
            save_session(session, out / "prompt.session")
        if step > 1 or session.tokens_read % 8 == 0:
            save_session(session, saved)
            took = time.perf_counter() - start
            print(session.tokens_read, session.compressions, f"{took:.1f} s", flush=True)


def compare(arguments: argparse.Namespace) -> None:
    """Prints the figures over the tokens that both runs have."""
    tokens = np.load(arguments.out / "tokens.npy")
    rows = []
    for file in sorted(arguments.out.glob("[0-9]*.npy")):
        other = arguments.reference / file.name
        if not other.exists():
            continue
        ours, theirs = (log_probabilities(np.load(path)) for path in (file, other))
        following = tokens[int(file.stem)]
        divergence = float((np.exp(theirs) * (theirs - ours)).sum())
        same = ours.argmax() == theirs.argmax()
        rows.append((-ours[following], -theirs[following], same, divergence))
    loss, reference, same, divergence = np.mean(rows, axis=0)
    print(
        f"{len(rows)} tokens: {loss:.4f} nats, reference {reference:.4f}, "
        f"top-1 agreement {same:.4f}, KL {divergence:.5f}"
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    for name in ("artifact", "text", "out"):
        runs.add_argument(name, type=Path)
    runs.add_argument("--emulate", action="store_true")
    runs.add_argument("--prompt-from", type=Path)
    runs.add_argument("--warm-up", type=int, default=638)
    runs.add_argument("--tokens", type=int, default=262)
    runs.set_defaults(act=run)
    compares = commands.add_parser("compare")
    for name in ("out", "reference"):
        compares.add_argument(name, type=Path)
    compares.set_defaults(act=compare)
    arguments = parser.parse_args()
    arguments.act(arguments)


if __name__ == "__main__":
    main()
