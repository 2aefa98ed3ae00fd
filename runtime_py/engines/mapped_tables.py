"""Large embedding tables, mapped by the engine, so that it can give their pages back.

A looked-up row of some hundred bytes makes the kernel map what it has cached around it, up to a
megabyte, and a process keeps these pages until memory is short: 100 MB of Gemma 3 270M's table
after a text of 4,000 tokens. onnxruntime's own mappings can't be touched safely, these can.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.artifact.looked_up import LookedUpTable
from edgeinfinite.errors import EdgeInfiniteError

_TOKENS = 128
"""Tokens looked up between two times that pages are given back, which takes 0.4 ms."""

_GIVE_BACK = getattr(mmap, "MADV_DONTNEED", None)
"""Windows has none; pages stay there."""


class MappedTables:
    """The tables of one artifact as values of onnxruntime, over the file's own bytes.

    It must live as long as the sessions that it was given to.

    Args:
        ort: the module onnxruntime.
        path: `weights.data`.
        tables: see `LookedUpTable`; none maps nothing.

    Raises:
        EdgeInfiniteError: the file can't be mapped, or a table ends behind it.
    """

    def __init__(self, ort: Any, path: Path, tables: Sequence[LookedUpTable]) -> None:
        self._looked_up = 0
        self._map: mmap.mmap | None = None
        self._values: dict[str, Any] = {}
        if not tables:
            return
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            arrays = {table.name: self._array(table) for table in tables}
        except (OSError, ValueError, OverflowError) as error:
            raise EdgeInfiniteError(
                f"{path} doesn't hold the tables that the manifest names: {error}; copy the "
                "artifact again or export it again"
            ) from error
        for name, array in arrays.items():
            value = ort.OrtValue.ortvalue_from_numpy(array)
            if value.data_ptr() != array.ctypes.data:
                raise RuntimeError("onnxruntime copied an array that it must share")
            self._values[name] = value

    def _array(self, table: LookedUpTable) -> np.ndarray:
        assert self._map is not None
        count = math.prod(table.shape)
        return np.frombuffer(self._map, table.dtype, count, table.offset).reshape(table.shape)

    def give_to(self, options: Any) -> None:
        """Makes a session with these options look rows up here."""
        for name, value in self._values.items():
            options.add_initializer(name, value)

    def looked_up(self, tokens: int) -> None:
        """Counts tokens, and gives pages back now and then. Rows are mapped again when needed."""
        self._looked_up += tokens
        if self._map is None or _GIVE_BACK is None or self._looked_up < _TOKENS:
            return
        self._looked_up = 0
        self._map.madvise(_GIVE_BACK)
