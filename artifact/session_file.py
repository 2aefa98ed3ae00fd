"""The format of session files: one safetensors file, which any runtime can open.

Tensors: the state's arrays by name, caches cut to the slots in use, plus `residual` and `unread`
(int64 token ids). Metadata `edgeinfinite`: a JSON object, `SessionHeader`; all other metadata is
the caller's, such as the conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError

FORMAT_VERSION = 2
HEADER_KEY = "edgeinfinite"
RESIDUAL = "residual"
UNREAD = "unread"


@dataclass(frozen=True)
class SessionHeader:
    """What a session file says of itself.

    Args:
        format: `FORMAT_VERSION` of the writer.
        belongs_to: fingerprint of what computed the state, see `artifact.manifest.fingerprint`.
        geometry: of the state.
        tokens_read, compressions: the session's counters.
    """

    format: int
    belongs_to: str
    geometry: Geometry
    tokens_read: int
    compressions: int


@dataclass(frozen=True)
class SessionFile:
    """A session file's content.

    Args:
        header: see there.
        tensors: by name.
        metadata: the caller's own, string to string.
    """

    header: SessionHeader
    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]


class _FormatOnly(msgspec.Struct):
    format: int


def write_session_file(path: Path, content: SessionFile) -> None:
    """Writes a session file; an older one is replaced only when the new one is complete.

    Raises:
        EdgeInfiniteError: it can't be written.
    """
    header = msgspec.json.encode(content.header).decode()
    unfinished = path.with_name(path.name + ".partial")
    try:
        save_file(content.tensors, unfinished, metadata={**content.metadata, HEADER_KEY: header})
        unfinished.replace(path)
    except OSError as error:
        raise EdgeInfiniteError(f"session file {path} can't be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def read_session_file(path: Path) -> SessionFile:
    """Reads a session file as it stands; whether it fits an engine is the caller's to check.

    Raises:
        EdgeInfiniteError: it is missing, damaged or of another format.
    """
    if not path.is_file():
        raise EdgeInfiniteError(f"session file {path} doesn't exist")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = metadata.pop(HEADER_KEY)
        version = msgspec.json.decode(header, type=_FormatOnly).format
        if version > FORMAT_VERSION:
            raise EdgeInfiniteError(f"{path} has session format {version}; update edgeinfinite")
        if version < FORMAT_VERSION:
            raise EdgeInfiniteError(
                f"{path} has session format {version}, from an edgeinfinite before this one; start "
                "a new session"
            )
        known = msgspec.json.decode(header, type=SessionHeader)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise broken(path, f"{type(error).__name__}: {error}") from error
    return SessionFile(known, tensors, metadata)


def broken(path: Path, reason: object) -> EdgeInfiniteError:
    """The error for a file that isn't what this module writes."""
    return EdgeInfiniteError(f"{path} is not a whole session file ({reason}); start a new one")
