"""Opens the session files that the Kotlin tests wrote, and continues them.

    python tests/android/check_kotlin_sessions.py FIXTURES

Run by `android_demo/ci/build.sh` after the tests: state files must go both ways.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sessions import FIXTURES, OPEN_MESSAGE

from edgeinfinite.runtime_py.conversation import Conversation
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.saved_session import load_session
from edgeinfinite.runtime_py.session import Session


def main(fixtures: Path) -> None:
    opened = 0
    for fixture in FIXTURES:
        folder = fixtures / "sessions" / fixture.name
        engine = load_engine(folder / "artifact", threads=1)
        recorded = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
        steps = recorded["steps"]
        tolerance = recorded["tolerance"]
        for index, step in enumerate(steps):
            path = fixtures / "kotlin" / fixture.name / step["state"]
            ours, _ = load_session(engine, folder / step["state"])
            theirs, extra = load_session(engine, path)
            assert extra == {"step": str(index)}, extra
            _assert_same(ours, theirs, tolerance, f"{fixture.name} {index}")
            _assert_close(
                ours.append([7]), theirs.append([7]), tolerance, f"{fixture.name} {index}"
            )
            opened += 1
        if fixture.name == OPEN_MESSAGE:
            opened += _check_open_messages(fixtures, tolerance)
    print(f"{opened} session files written by Kotlin: opened in Python, equal, and continued")


def _check_open_messages(fixtures: Path, tolerance: float) -> int:
    """A document that Kotlin read, and one that Python read and Kotlin saved again."""
    folder = fixtures / "sessions" / OPEN_MESSAGE
    asked = json.loads((folder / "open.json").read_text(encoding="utf-8"))
    ours = Conversation.open(folder / "artifact", session=folder / "open.session", threads=1)
    names = ("open.session", "kept.session")
    for name in names:
        path = fixtures / "kotlin" / OPEN_MESSAGE / name
        theirs = Conversation.open(folder / "artifact", session=path, threads=1)
        assert theirs.message_is_open, name
        assert theirs.turn(asked["question"]) == asked["turn"], name
        assert name == "open.session" or theirs.document == ours.document, name
        _assert_same(ours.session, theirs.session, tolerance, name)
    return len(names)


def _assert_same(ours: Session, theirs: Session, tolerance: float, what: str) -> None:
    for name in ("tokens_read", "compressions", "cached", "residual", "unread"):
        assert getattr(ours, name) == getattr(theirs, name), f"{what}: {name}"
    for name, array in ours.state.arrays.items():
        _assert_close(array, theirs.state.arrays[name], tolerance, f"{what}: {name}")


def _assert_close(ours: np.ndarray, theirs: np.ndarray, tolerance: float, what: str) -> None:
    limit = tolerance * max(1.0, float(np.abs(ours).max()))
    worst = float(np.abs(ours - theirs).max())
    assert worst <= limit, f"{what}: off by {worst}, limit {limit}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} FIXTURES")
    main(Path(sys.argv[1]))
