"""What must hold at any point of any text: a saved state goes on, a fork harms nothing, and how a
text is cut changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.logprobs import log_probabilities
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session


def restored(session: Session, path: Path, extra: dict[str, str]) -> Session:
    """Saves a session and loads it again.

    Args:
        session: between two pieces.
        path: the file, which stays.
        extra: metadata for the file.

    Returns:
        The loaded one.

    Raises:
        EdgeInfiniteError: a bit of its state differs.
    """
    save_session(session, path, extra=extra)
    again, _ = load_session(session.engine, path)
    if digest(again) != digest(session):
        raise EdgeInfiniteError(f"{path} doesn't restore the state that was saved in it")
    return again


def digest(session: Session) -> str:
    """sha256 over everything that counts of a session."""
    found = hashlib.sha256(repr((session.tokens_read, session.compressions)).encode())
    found.update(np.array(session.residual, np.int64).tobytes())
    for spec in session.state.specs:
        found.update(np.ascontiguousarray(session.state.in_use(spec)).tobytes())
    return found.hexdigest()


def fork_harms_nothing(session: Session, tokens: Sequence[int]) -> bool:
    """Whether a session stays bit for bit what it was while a fork of it reads on."""
    before = digest(session)
    session.fork().append(tokens)
    return digest(session) == before


def split_divergence(session: Session, whole: Sequence[int], cut: Sequence[Sequence[int]]) -> float:
    """Nats by which predictions differ when the same tokens are fed whole and in pieces.

    Args:
        session: stays as it is; forks of it read.
        whole: the tokens.
        cut: the same tokens in pieces.

    Returns:
        The Kullback-Leibler divergence of the two predictions of the next token.
    """
    one, other = session.fork(), session.fork()
    first = log_probabilities(one.append(whole))
    for piece in cut:
        logits = other.append(piece)
    return float(np.exp(first) @ (first - log_probabilities(logits)))
