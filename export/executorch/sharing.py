"""Stores a tied embedding once in the file, though two parts of the program own it.

The embedding operator reads a constant of the program. The weights of the LM head are data of an
XNNPACK partition. In 8 bits both have the same bytes, codes and scales. A program finds its data
through a table of segments (offset and size), so the partition's segment can lie inside the segment
of the constants. The layout follows ExecuTorch's `schema/program.fbs` and its extended header.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_HEADER = struct.Struct("<4sIQQQ")
"""At byte 8: magic, length, size of the program, offset of the segments, their size."""

_MAGIC = b"eh00"
_SEGMENTS_FIELD = 4
_ALIGNMENT = 128
_LEAST = 1 << 14
"""Smaller segments aren't worth a search."""

_STEP = 16
"""Constants begin at multiples of this many bytes."""


@dataclass(frozen=True)
class _Segment:
    """A segment's offset from the first segment, its size, and where the file stores the offset."""

    offset: int
    size: int
    offset_at: int | None


def share_segments(path: Path) -> int:
    """Removes segments whose bytes are part of the first one, the program's constants.

    Args:
        path: a program as ExecuTorch writes it; rewritten if there is something to share.

    Returns:
        Bytes saved.
    """
    data = bytearray(path.read_bytes())
    magic, length, program, base, whole = _HEADER.unpack_from(data, 8)
    segments = _segments(data) if magic == _MAGIC else []
    if not segments or not segments[0].size:
        return 0
    constants = bytes(data[base : base + segments[0].size])
    steps = np.frombuffer(constants, f"V{_STEP}", len(constants) // _STEP)
    new = bytearray(constants)
    shared = 0
    for segment in segments[1:]:
        content = bytes(data[base + segment.offset : base + segment.offset + segment.size])
        found = _place_in(constants, steps, content) if segment.size >= _LEAST else None
        if found is None:
            new.extend(bytes(-len(new) % _ALIGNMENT))
            found = len(new)
            new.extend(content)
        else:
            shared += 1
        assert segment.offset_at is not None  # only the first segment has offset 0, not stored
        struct.pack_into("<Q", data, segment.offset_at, found)
    if not shared:
        return 0
    _HEADER.pack_into(data, 8, magic, length, program, base, len(new))
    path.write_bytes(bytes(data[:base]) + bytes(new))
    return whole - len(new)


def _place_in(constants: bytes, steps: np.ndarray, content: bytes) -> int | None:
    """Where `constants` has `content`, at a multiple of `_STEP`; `steps` are its parts."""
    first = np.frombuffer(content, f"V{_STEP}", 1)
    for step in np.flatnonzero(steps == first):
        place = int(step) * _STEP
        if constants[place : place + len(content)] == content:
            return place
    return None


def _segments(data: bytearray) -> list[_Segment]:
    """The program's table of segments, read from the flatbuffer."""
    vector = _field(data, _at(data, 0), _SEGMENTS_FIELD)
    if vector is None:
        return []
    vector += _at(data, vector)
    segments = []
    for index in range(_at(data, vector)):
        entry = vector + 4 * (index + 1)
        table = entry + _at(data, entry)
        offset, size = _field(data, table, 0), _field(data, table, 1)
        segments.append(_Segment(_long(data, offset), _long(data, size), offset))
    return segments


def _field(data: bytearray, table: int, number: int) -> int | None:
    """The position of a table's field; None if the field has its default value."""
    names = table - int(struct.unpack_from("<i", data, table)[0])
    size = struct.unpack_from("<H", data, names)[0]
    if 4 + 2 * number >= size:
        return None
    place = int(struct.unpack_from("<H", data, names + 4 + 2 * number)[0])
    return table + place if place else None


def _at(data: bytearray, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])


def _long(data: bytearray, place: int | None) -> int:
    return 0 if place is None else int(struct.unpack_from("<Q", data, place)[0])
