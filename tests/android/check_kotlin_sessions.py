"""Opens the session files that the Kotlin tests wrote, and continues them.

    python tests/android/check_kotlin_sessions.py FIXTURES

Run by `android_demo/ci/build.sh` after the tests: state files must go both ways.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import sessions
from exchanges import RECEIVERS, senders
from rounding import relative
from sessions import FLOAT_TOLERANCE, OPEN_MESSAGE

from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.session.session import Session


def main(fixtures: Path) -> None:
    opened = 0
    for fixture in sessions.fixtures():
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
    exchanged, worst = _check_exchanges(fixtures)
    print(f"{exchanged} of them by another engine, which is off by {worst:.1e} at most")


def _check_exchanges(fixtures: Path) -> tuple[int, float]:
    """Texts that another engine began, Kotlin went on with, and the first one ends."""
    folder = fixtures / "exchanges"
    cases = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    worst = 0.0
    for receiver in RECEIVERS:
        for sender, engine in senders(folder, receiver):
            for case in cases:
                if (case["receiver"], case["sender"]) == (receiver, sender):
                    worst = max(worst, _ended_at_home(fixtures, engine, case))
    assert cases, "no exchange was recorded"
    assert worst <= FLOAT_TOLERANCE, f"off by {worst}"
    return len(cases), worst


def _ended_at_home(fixtures: Path, engine: Engine, case: dict[str, Any]) -> float:
    stayed = Session(engine)
    stayed.append(case["before"] + case["tokens"] + case["answer"])
    back, _ = load_session(engine, fixtures / "kotlin" / "exchanges" / case["state"])
    assert back.taken_over
    for name in ("tokens_read", "compressions", "cached", "residual", "unread"):
        assert getattr(stayed, name) == getattr(back, name), f"{case['state']}: {name}"
    pairs = [(stayed.state.in_use(spec), back.state.in_use(spec)) for spec in stayed.state.specs]
    pairs.append((stayed.append([7]), back.append([7])))
    return max(relative(*pair) for pair in pairs)


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
