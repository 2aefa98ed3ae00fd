"""Replays recorded sessions on this CPU: how far do they end from what was recorded?

    python tests/android/replay.py SESSIONS

`SESSIONS` is the folder that `sessions.write_sessions` wrote, perhaps on another CPU. Only the
runtime is needed, so that this also runs under an emulated CPU (`scripts/other_cpus.sh`).
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.artifact.tensors import TensorSpec
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.saved_session import load_session
from edgeinfinite.runtime_py.session import Cancelled, Session
from edgeinfinite.runtime_py.state import State


@dataclass(frozen=True)
class Recording:
    """What was recorded.

    Args:
        steps: kind, tokens and state file of each, as in `steps.json`.
        logits: `[rows, V]` float32.
        chunk_length: of the session.
    """

    steps: list[dict[str, Any]]
    logits: np.ndarray
    chunk_length: int | None


def read_recording(folder: Path, vocabulary: int) -> tuple[Recording, float]:
    """The recording in a folder, and its tolerance."""
    fields = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    logits = np.fromfile(folder / "logits.f32", "<f4").reshape(-1, vocabulary)
    return Recording(fields["steps"], logits, fields["chunk_length"]), fields["tolerance"]


def distances(
    recording: Recording, owner: Engine, engine: Engine, folder: Path
) -> dict[str, float]:
    """How far a replay is from the recording, each step from the step's own recorded tokens.

    Args:
        recording: made by `owner`.
        owner: whose states the files hold.
        engine: what the replay runs on.
        folder: of the state files.

    Returns:
        For each step and tensor the largest difference, relative to the largest magnitude.
    """
    found: dict[str, float] = {}
    session = Session(engine, chunk_length=recording.chunk_length)
    row = 0
    for index, step in enumerate(recording.steps):
        tokens = step["tokens"]
        if step["kind"] in ("append", "resumed"):
            rows = [session.append(tokens)]
        elif step["kind"] in ("decode", "greedy"):
            rows = [session.append([token]) for token in tokens]
        else:
            rows = []
            before = session.tokens_read
            with suppress(Cancelled):
                session.append(
                    tokens, cancelled=lambda before=before: session.tokens_read >= before + 30
                )
        for logits in rows:
            key = f"{index} logits"
            found[key] = max(found.get(key, 0.0), distance(recording.logits[row], logits))
            row += 1
        state = load_session(owner, folder / step["state"])[0].state
        for spec in state.specs:
            if spec.role not in ("length", "has_memory"):
                arrays = (_in_use(of, spec) for of in (state, session.state))
                found[f"{index} {spec.name}"] = distance(*arrays)
    return found


def _in_use(state: State, spec: TensorSpec) -> np.ndarray:
    if spec.layer is None or not spec.is_cache:
        return state.arrays[spec.name]
    return state.slots(spec.name, 0, int(state.length[spec.layer]))


def distance(expected: np.ndarray, actual: np.ndarray) -> float:
    """The largest difference, relative to the largest magnitude or 1."""
    expected, actual = expected.astype(np.float32), actual.astype(np.float32)
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return float(np.abs(expected - actual).max(initial=0.0)) / size


def main(sessions: Path) -> int:
    failed = 0
    for folder in sorted(path for path in sessions.iterdir() if path.is_dir()):
        engine = load_engine(folder / "artifact", threads=1)
        recording, tolerance = read_recording(folder, engine.vocabulary)
        found = distances(recording, engine, engine, folder)
        worst = max(found, key=lambda name: found[name])
        good = found[worst] <= tolerance
        failed += not good
        print(
            f"{'ok' if good else 'FAILED':<8}{folder.name:<24}{found[worst]:.2e} of "
            f"{tolerance:.2e} ({worst})"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} SESSIONS")
    raise SystemExit(main(Path(sys.argv[1])))
