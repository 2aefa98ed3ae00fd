"""The format of session files: one safetensors file, which any runtime can open.

Tensors: the state's arrays by name, caches cut to the slots in use, plus `residual` and `unread`
(int64 token ids). Metadata `edgeinfinite`: a JSON object, `SessionHeader`; `edgeinfinite.sha256`:
the SHA-256 of the whole file with zeros in place of its own 64 digits; all other metadata is the
caller's, such as the conversation.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.slots_by_head import refuse_slots_by_head
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import is_replaceable, replacing

FORMAT_VERSION = 2
HEADER_KEY = "edgeinfinite"
CHECKSUM_KEY = "edgeinfinite.sha256"
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
        model: what the state is about, see `artifact.manifest.digest_of_model`; "" in files of
            older writers, which only the artifact that wrote them opens.
        cache_dims: the layout of the file's caches by role, such as `{"k_cache": "B K C D"}`; empty
            likewise.
        cache_scales: of an int8 cache, see `artifact.manifest.scales_digest`; "" of others, and in
            files of older writers.
    """

    format: int
    belongs_to: str
    geometry: Geometry
    tokens_read: int
    compressions: int
    model: str = ""
    cache_dims: dict[str, str] = field(default_factory=dict)
    cache_scales: str = ""


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


_NO_CHECKSUM = "0" * 64
_LONGEST_HEADER = 100_000_000
"""Bytes, as in the safetensors library."""

# What the libraries raise for damaged contents; the user gets one line.
_FOREIGN = (
    SafetensorError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)


class _FormatOnly(msgspec.Struct):
    format: int


def write_session_file(path: Path, content: SessionFile) -> None:
    """Writes a session file for its owner only; an older one is replaced when the new one is whole.

    Raises:
        EdgeInfiniteError: it can't be written; an older one is as it was.
    """
    if not is_replaceable(path):
        raise EdgeInfiniteError(f"session file {path} is not a regular file; give another name")
    header = msgspec.json.encode(content.header).decode()
    metadata = {**content.metadata, HEADER_KEY: header, CHECKSUM_KEY: _NO_CHECKSUM}
    try:
        with replacing(path, private=True) as unfinished:
            save_file(content.tensors, unfinished, metadata=metadata)
            with unfinished.open("r+b") as file:
                place = _checksum_place(file)
                checksum = _checksum(file, place)
                file.seek(place)
                file.write(checksum.encode())
    except (OSError, SafetensorError) as error:  # a full disk is the latter
        raise EdgeInfiniteError(f"session file {path} can't be written: {error}") from error


def read_session_file(path: Path) -> SessionFile:
    """Reads a session file; the caller checks whether it fits an engine.

    Raises:
        EdgeInfiniteError: it is missing, damaged or of another format.
    """
    header, metadata = read_session_header(path)
    try:
        _check_checksum(path, metadata.pop(CHECKSUM_KEY))
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except _FOREIGN as error:
        raise broken(path, f"{type(error).__name__}: {error}") from error
    return SessionFile(header, tensors, metadata)


def read_session_header(path: Path) -> tuple[SessionHeader, dict[str, str]]:
    """Reads what a session file says of itself, without its tensors and without the checksum.

    Returns:
        The header, and all other metadata, the checksum included.

    Raises:
        EdgeInfiniteError: it is missing, damaged as far as that can be seen, or of another format.
    """
    if not path.is_file():
        raise EdgeInfiniteError(f"session file {path} doesn't exist")
    _check_readable(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
        header = metadata.pop(HEADER_KEY)
        version = msgspec.json.decode(header, type=_FormatOnly).format
        if version > FORMAT_VERSION:
            raise EdgeInfiniteError(f"{path} has session format {version}; update edgeinfinite")
        if version < FORMAT_VERSION:
            raise EdgeInfiniteError(
                f"{path} has session format {version}, from an edgeinfinite before this one; start "
                "a new session"
            )
        refuse_slots_by_head(path, header, session=True)
        return msgspec.json.decode(header, type=SessionHeader), metadata
    except _FOREIGN as error:
        raise broken(path, f"{type(error).__name__}: {error}") from error


def tensor_length(path: Path, name: str) -> int:
    """The first axis of a session file's tensor, which isn't read.

    Raises:
        EdgeInfiniteError: there is no such tensor, or the file is damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            return int(file.get_slice(name).get_shape()[0])
    except (*_FOREIGN, IndexError) as error:
        raise broken(path, f"{type(error).__name__}: {error}") from error


def broken(path: Path, reason: object) -> EdgeInfiniteError:
    """The error for a file that isn't what this module writes."""
    short = " ".join(str(reason).split())[:300]
    return EdgeInfiniteError(f"{path} is not a whole session file ({short}); start a new one")


def _check_readable(path: Path) -> None:
    """safetensors says of a file that may not be read that it isn't there."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise EdgeInfiniteError(
            f"session file {path} can't be read: {error.strerror or error}"
        ) from error


def _check_checksum(path: Path, stored: str) -> None:
    with path.open("rb") as file:
        if _checksum(file, _checksum_place(file)) != stored:
            raise ValueError("its checksum isn't that of its contents")


def _checksum_place(file: BinaryIO) -> int:
    """Where the checksum's 64 digits stand in the file."""
    length = int.from_bytes(file.read(8), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    # In a value the quotes would be escaped, so this is the key.
    before, found, after = file.read(length).partition(f'"{CHECKSUM_KEY}":"'.encode())
    if not found or len(after) < len(_NO_CHECKSUM):
        raise ValueError("it has no checksum")
    return 8 + len(before) + len(found)


def _checksum(file: BinaryIO, place: int) -> str:
    file.seek(0)
    digest = hashlib.sha256(file.read(place))
    digest.update(_NO_CHECKSUM.encode())
    file.seek(place + len(_NO_CHECKSUM))
    while part := file.read(1 << 20):
        digest.update(part)
    return digest.hexdigest()
