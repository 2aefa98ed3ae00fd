"""Reads a text with an artifact and records what it computes, on the CPU that it is given.

    python tests/arm64/read_text.py ARTIFACT FOLDER --record TEXT     one CPU: makes FOLDER
    qemu-aarch64 ... read_text.py ARTIFACT FOLDER --repeat FILE.npz   another: the same text again

Before each of three compressions the first run saves its session. Both runs go on from these files,
read tokens across the compression, then token by token, and record logits and state: so each step
is compared from equal numbers. Then both read the text as a whole, each by itself.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

COMPRESSIONS = 3
AT_ONCE = 16
"""Tokens of one piece; a session is saved at most so many before a compression."""

STEPS = 8
"""Tokens read one by one after a compression."""

ANSWER = 16
"""Greedy tokens at the end."""

TOKENS_FILE = "tokens.npy"
RECORD_FILE = "record.npz"


def save_points(engine: Engine, tokens: Sequence[int], folder: Path) -> int:
    """Saves a session shortly before each compression.

    Returns:
        How many tokens of the text it takes to probe the last of them.

    Raises:
        SystemExit: the text is too short.
    """
    session = Session(engine)
    for number in range(COMPRESSIONS):
        while True:
            before = session.fork()
            piece = tokens[session.tokens_read : session.tokens_read + AT_ONCE]
            if len(piece) < AT_ONCE:
                raise SystemExit(
                    f"the text ends before compression {number + 1}; give a longer one"
                )
            session.append(piece)
            if session.compressions > number:
                break
        save_session(before, folder / f"{number}.session")
    used = session.tokens_read + STEPS + 1
    if len(tokens) < used:
        raise SystemExit("the text ends after the last compression; give a longer one")
    return used


def probe(engine: Engine, tokens: Sequence[int], path: Path) -> dict[str, np.ndarray]:
    """Goes on from a session file: one piece, which compresses, then token by token.

    Returns:
        `logits [1 + STEPS, V]`, and the state's tensors in use, caches `[B, K, C, D]`.
    """
    session, _ = load_session(engine, path)
    compressions, start = session.compressions, session.tokens_read
    logits = [session.append(tokens[start : start + AT_ONCE])]
    assert session.compressions == compressions + 1
    for token in tokens[start + AT_ONCE : start + AT_ONCE + STEPS]:
        logits.append(session.append([token]))
    result = {"logits": np.stack(logits)}
    for spec in session.state.specs:
        array = session.state.in_use(spec)
        if spec.is_cache:
            array = array.transpose([spec.dims.split().index(axis) for axis in "BKCD"])
        result[f"state.{spec.role}.{spec.name}"] = array
    return result


def read_whole(engine: Engine, tokens: Sequence[int], last: int) -> dict[str, np.ndarray]:
    """Reads a text from its start, the last tokens one by one, and answers greedily.

    Args:
        tokens: the text; the last of them is only asked for.
        last: tokens whose logits are kept.

    Returns:
        `whole.logits [last, V]`, which ask for the last tokens, and `greedy [ANSWER]`.
    """
    session = Session(engine)
    logits = [session.append(tokens[: len(tokens) - last])]
    for token in tokens[len(tokens) - last : -1]:
        logits.append(session.append([token]))
    after = session.append([tokens[-1]])
    greedy = []
    for _ in range(ANSWER):
        greedy.append(int(after.argmax()))
        after = session.append([greedy[-1]])
    return {"whole.logits": np.stack(logits), "greedy": np.array(greedy)}


def record(engine: Engine, folder: Path) -> dict[str, np.ndarray]:
    """All that is compared, of the sessions and tokens in `folder`."""
    tokens = np.load(folder / TOKENS_FILE).tolist()
    values: dict[str, np.ndarray] = {}
    for number in range(COMPRESSIONS):
        probed = probe(engine, tokens, folder / f"{number}.session")
        values |= {f"{number}.{name}": array for name, array in probed.items()}
    return values | read_whole(engine, tokens, last=4 * STEPS)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("folder", type=Path)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--record", type=Path, metavar="TEXT")
    how.add_argument("--repeat", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    started = time.monotonic()
    engine = load_engine(arguments.artifact, threads=1)
    folder, target = arguments.folder, arguments.repeat or arguments.folder / RECORD_FILE
    if arguments.record is not None:
        folder.mkdir(parents=True)
        text = arguments.record.read_text(encoding="utf-8")
        tokens = load_tokenizer(arguments.artifact).encode_text(text)
        used = save_points(engine, tokens, folder)
        np.save(folder / TOKENS_FILE, np.array(list(itertools.islice(tokens, used))))
    np.savez(target, allow_pickle=False, **record(engine, folder))
    print(f"{target.name}: {time.monotonic() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
