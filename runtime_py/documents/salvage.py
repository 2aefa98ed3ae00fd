"""What can be read of an archive whose directory is gone: a file that was cut, mostly."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator

from edgeinfinite.runtime_py.documents.budget import Budget

_MARK = b"PK\x03\x04"
_HEAD = struct.Struct("<4sHHHHHIIIHH")
_STORED, _DEFLATED = 0, 8
_PASSWORD, _STREAMED, _UTF_8 = 1, 1 << 3, 1 << 11
"""Flags. Of a streamed part, size and sum stand behind it."""

_BLOCK = 1 << 16


def salvaged(data: bytes, budget: Budget) -> zipfile.ZipFile | None:
    """An archive of the parts that are whole; None if there is none.

    Args:
        data: the damaged one's bytes.
        budget: counts what is unpacked.

    Raises:
        TooMuch: as `Budget.unpack`.
    """
    file = io.BytesIO()
    names: set[str] = set()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in _parts(data, budget):
            if name not in names:
                names.add(name)
                made.writestr(zipfile.ZipInfo(name), content)
    return zipfile.ZipFile(file) if names else None


def _parts(data: bytes, budget: Budget) -> Iterator[tuple[str, bytes]]:
    at = data.find(_MARK)
    while at >= 0 and at + _HEAD.size <= len(data):
        _, _, flags, method, _, _, sum_, packed, _, name_size, more = _HEAD.unpack_from(data, at)
        start = at + _HEAD.size + name_size + more
        name = data[at + _HEAD.size : at + _HEAD.size + name_size]
        end, content = at + len(_MARK), None
        if not flags & _PASSWORD and method == _DEFLATED:
            content, end = _inflated(data, start, budget)
        elif (
            method == _STORED
            and not flags & (_PASSWORD | _STREAMED)
            and start + packed <= len(data)
        ):
            content, end = data[start : start + packed], start + packed
            budget.unpack(packed)
        is_whole = flags & _STREAMED or (content is not None and zlib.crc32(content) == sum_)
        if content is not None and is_whole and name and not name.endswith(b"/"):
            yield name.decode("utf-8" if flags & _UTF_8 else "cp437", "replace"), content
        at = data.find(_MARK, max(end, at + len(_MARK)))


def _inflated(data: bytes, start: int, budget: Budget) -> tuple[bytes | None, int]:
    """A part's bytes and where it ends; None if it is cut or damaged."""
    stream, blocks, at = zlib.decompressobj(-zlib.MAX_WBITS), [], start
    try:
        while not stream.eof and at < len(data):
            piece = data[at : at + _BLOCK]
            at += len(piece)
            while piece and not stream.eof:
                block = stream.decompress(piece, _BLOCK)
                budget.unpack(len(block))
                blocks.append(block)
                piece = stream.unconsumed_tail
    except zlib.error:
        return None, start
    if not stream.eof:
        return None, len(data)
    return b"".join(blocks), at - len(stream.unused_data)
