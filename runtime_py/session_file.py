"""Sessions on disk: one safetensors file, so that a text read once can be asked about later.

Tensors: the state's arrays by name, caches cut to the slots in use, plus `residual` and `unread`
(int64 token ids). Metadata `edgeinfinite`: a JSON object with the format's version, the fingerprint
of what the state belongs to, and the counters; other metadata is the caller's. Any runtime that
reads safetensors can open it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session import Session, new_unread
from edgeinfinite.runtime_py.state import State

FORMAT_VERSION = 1
_KEY = "edgeinfinite"


def save_session(session: Session, path: Path, *, extra: dict[str, str] | None = None) -> None:
    """Writes a session; an older file is replaced only when the new one is complete.

    Args:
        session: between two calls of `append`.
        path: the file.
        extra: the caller's own metadata, such as the conversation, string to string.
    """
    header = {
        "format": FORMAT_VERSION,
        "belongs_to": session.engine.fingerprint,
        "geometry": session.engine.geometry.to_dict(),
        "tokens_read": session.tokens_read,
        "compressions": session.compressions,
    }
    tensors = _in_use(session.state)
    tensors["residual"] = np.array(session.residual, dtype=np.int64)
    tensors["unread"] = np.array(session.unread, dtype=np.int64)
    unfinished = path.with_name(path.name + ".partial")
    try:
        save_file(tensors, unfinished, metadata={**(extra or {}), _KEY: json.dumps(header)})
        unfinished.replace(path)
    except OSError as error:
        raise EdgeInfiniteError(f"session file {path} can't be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def load_session(
    engine: Engine, path: Path, *, chunk_length: int | None = None
) -> tuple[Session, dict[str, str]]:
    """Restores a session.

    Args:
        engine: of the same artifact, or of another one of the same weights, gate and geometry.
        path: written by `save_session`.
        chunk_length: as in `Session`.

    Returns:
        The session, going on exactly where it was, and the caller's own metadata.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, of a newer format, holds NaN, or belongs
            to another artifact.
    """
    if not path.is_file():
        raise EdgeInfiniteError(f"session file {path} doesn't exist")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header: dict[str, Any] = json.loads(metadata.pop(_KEY))
        version, belongs_to = int(header["format"]), header["belongs_to"]
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise EdgeInfiniteError(
            f"{path} is not a whole session file ({type(error).__name__}: {error}); start a new one"
        ) from error
    if version > FORMAT_VERSION:
        raise EdgeInfiniteError(f"{path} has session format {version}; update edgeinfinite")
    if belongs_to != engine.fingerprint or header.get("geometry") != engine.geometry.to_dict():
        raise EdgeInfiniteError(
            f"{path} was made with another model, gate or geometry; open it with that artifact"
        )
    session = Session(engine, chunk_length=chunk_length)
    try:
        _restore(session.state, tensors)
        session.tokens_read = int(header["tokens_read"])
        session.compressions = int(header["compressions"])
        session.residual = [int(token) for token in tensors["residual"]]
        session.unread = new_unread(int(token) for token in tensors["unread"])
        _check_counters(session)
    except (KeyError, ValueError, TypeError) as error:
        raise EdgeInfiniteError(
            f"{path} is not a whole session file ({error}); start a new one"
        ) from error
    return session, metadata


def _is_cache(name: str) -> bool:
    return name.startswith(("k_cache_", "v_cache_"))


def _used_slots(state: State, name: str) -> np.ndarray:
    """A view of a cache's filled part."""
    return state.slots(name, 0, int(state.length[int(name.rpartition("_")[2])]))


def _in_use(state: State) -> dict[str, np.ndarray]:
    return {
        name: np.ascontiguousarray(_used_slots(state, name)) if _is_cache(name) else array
        for name, array in state.arrays.items()
    }


def _restore(state: State, tensors: dict[str, np.ndarray]) -> None:
    for counter in ("length", "has_memory"):
        _copy_checked(counter, state.arrays[counter], tensors[counter])
    for name, array in state.arrays.items():
        target = _used_slots(state, name) if _is_cache(name) else array
        _copy_checked(name, target, tensors[name])


def _copy_checked(name: str, target: np.ndarray, source: np.ndarray) -> None:
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ValueError(
            f"{name} is {source.dtype}{list(source.shape)}, expected "
            f"{target.dtype}{list(target.shape)}"
        )
    if not np.isfinite(source).all():
        raise ValueError(f"{name} holds NaN or infinity")
    np.copyto(target, source)


def _check_counters(session: Session) -> None:
    geometry = session.engine.geometry
    folded = session.compressions * geometry.segment_length
    residual = len(session.residual)
    sinks = min(session.cached, geometry.sink_length)
    cached = sinks + min(geometry.most_slots, folded) + residual
    if session.cached != cached or not 0 <= cached <= geometry.capacity:
        raise ValueError(f"{session.cached} slots in use don't agree with {residual} tokens")
    if session.tokens_read != folded + sinks + residual:
        raise ValueError(f"{session.tokens_read} tokens read don't agree with the counters")
