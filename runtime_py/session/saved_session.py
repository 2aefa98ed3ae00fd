"""Sessions on disk, so that a text read once can be asked about later."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.session_file import (
    FORMAT_VERSION,
    RESIDUAL,
    UNREAD,
    SessionFile,
    SessionHeader,
    broken,
    read_session_file,
    write_session_file,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.foreign_state import converted
from edgeinfinite.runtime_py.session.session import Session, new_unread


def save_session(session: Session, path: Path, *, extra: dict[str, str] | None = None) -> None:
    """Writes a session; an older file is replaced only when the new one is complete.

    Args:
        session: between two calls of `append`.
        path: the file.
        extra: the caller's own metadata, such as the conversation, string to string.

    Raises:
        EdgeInfiniteError: the file can't be written.
    """
    header = SessionHeader(
        format=FORMAT_VERSION,
        belongs_to=session.engine.fingerprint,
        geometry=session.engine.geometry,
        tokens_read=session.tokens_read,
        compressions=session.compressions,
        model=session.engine.model_digest,
        cache_dims={spec.role: spec.dims for spec in session.state.specs if spec.is_cache},
        cache_scales=session.engine.cache_scales,
    )
    state = session.state
    tensors = {spec.name: np.ascontiguousarray(state.in_use(spec)) for spec in state.specs}
    tensors[RESIDUAL] = np.array(session.residual, dtype=np.int64)
    tensors[UNREAD] = np.array(session.unread, dtype=np.int64)
    write_session_file(path, SessionFile(header, tensors, dict(extra or {})))


def load_session(
    engine: Engine, path: Path, *, chunk_length: int | None = None
) -> tuple[Session, dict[str, str]]:
    """Restores a session.

    Args:
        engine: of the same artifact, or of any other one of the same model, gate, scorer and
            geometry: another back end, quantization or type of cache. An int8 cache goes on in an
            int8 cache of the same scales.
        path: written by `save_session`.
        chunk_length: as in `Session`.

    Returns:
        The session, going on exactly where it was, and the caller's own metadata. If another
        artifact computed the state, `taken_over` is True: it goes on with this one's rounding.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, of a newer format, holds NaN, or is of
            another model, gate, scorer or geometry, or of an int8 cache with other scales.
    """
    content = read_session_file(path)
    header, tensors = content.header, content.tensors
    same_scales = "" != header.cache_scales == engine.cache_scales
    own = header.belongs_to == engine.fingerprint and (same_scales or not header.cache_scales)
    same_model = own or (header.model != "" and header.model == engine.model_digest)
    if not same_model or header.geometry != engine.geometry:
        raise EdgeInfiniteError(
            f"{path} was made with another model, gate, scorer or geometry; open it with "
            "that artifact"
        )
    session = Session(engine, chunk_length=chunk_length)
    session.taken_over = not own
    try:
        if not own:
            tensors = converted(
                tensors, header.cache_dims, session.state.specs, same_scales=same_scales
            )
        _restore(session, header, tensors)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise broken(path, error) from error
    return session, content.metadata


def _restore(session: Session, header: SessionHeader, tensors: dict[str, np.ndarray]) -> None:
    state = session.state
    session.tokens_read = header.tokens_read
    session.compressions = header.compressions
    session.residual = _token_ids(RESIDUAL, tensors, session.engine.vocabulary).tolist()
    session.unread = new_unread(_token_ids(UNREAD, tensors, session.engine.vocabulary).tolist())
    for counter in ("length", "has_memory"):  # first: they say how much of a cache is in use
        _copy_checked(counter, state.arrays[counter], tensors[counter])
    _check_counters(session)
    foreign = set(tensors) - {spec.name for spec in state.specs} - {RESIDUAL, UNREAD}
    if foreign:
        raise ValueError(f"{min(foreign)} isn't a tensor of this artifact's sessions")
    for spec in state.specs:
        _copy_checked(spec.name, state.in_use(spec), tensors[spec.name])


def _token_ids(name: str, tensors: dict[str, np.ndarray], vocabulary: int) -> np.ndarray:
    ids = tensors[name]
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise ValueError(f"{name} is {ids.dtype}{list(ids.shape)}, expected token ids, int64 [T]")
    outside = ids[(ids < 0) | (ids >= vocabulary)]
    if outside.size:
        raise ValueError(f"{name} holds token {outside[0]}, the vocabulary has {vocabulary}")
    return ids


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
    """Every counter follows from the number of tokens, layer by layer."""
    geometry = session.engine.geometry
    if session.compressions < 0:
        raise ValueError(f"{session.compressions} compressions")
    folded = session.compressions * geometry.segment_length
    residual = len(session.residual)
    sinks = min(max(session.cached, 0), geometry.sink_length)
    read = folded + sinks + residual
    for layer, length in enumerate(session.state.length.tolist()):
        if geometry.slides(layer):
            _check_window(geometry, layer, length, read)
            continue
        used = sinks + min(geometry.slots_of(layer), folded) + residual
        if length != used or used > geometry.capacity:
            raise ValueError(
                f"layer {layer} has {length} slots in use, {residual} tokens and "
                f"{session.compressions} compressions make {used} of {geometry.capacity}"
            )
    if session.tokens_read != read:
        raise ValueError(f"{session.tokens_read} tokens read don't agree with the counters")
    has_memory = bool(session.compressions) and session.engine.reads_memory
    if session.state.has_memory.tolist() != [float(has_memory)]:
        raise ValueError(f"has_memory is {session.state.has_memory}")


def _check_window(geometry: Geometry, layer: int, length: int, read: int) -> None:
    """A layer with a sliding window holds it, as far as the text goes, and at most N tokens more.

    How many depends on when it was full; any number of these is a sound state.
    """
    kept = geometry.kept_of(layer)
    least, most = min(kept, read), min(kept + geometry.segment_length, read)
    if not least <= length <= most:
        raise ValueError(
            f"layer {layer} has {length} slots in use, of {read} tokens and a sliding window it "
            f"holds {least} to {most}"
        )
