"""Tables that a graph looks rows up in, as the manifest's details name them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np

from edgeinfinite.errors import EdgeInfiniteError

WEIGHTS_FILE = "weights.data"
"""All weights of an ONNX artifact."""

LOOKED_UP = "looked_up"
"""Key in the manifest's details; only artifacts with a large vocabulary have it."""

_DTYPES = ("float32", "float16", "uint8", "int8")


@dataclass(frozen=True)
class LookedUpTable:
    """An initializer whose rows are looked up and never read otherwise.

    Args:
        name: of the initializer.
        dtype: numpy's name of it.
        shape: `[V, ...]`.
        offset: its first byte in `weights.data`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def as_details(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


def tables_of(details: dict[str, Any]) -> tuple[LookedUpTable, ...]:
    """The tables that a manifest's details name, if any.

    Raises:
        EdgeInfiniteError: the details aren't such tables.
    """
    try:
        tables = msgspec.convert(details.get(LOOKED_UP, []), tuple[LookedUpTable, ...])
    except msgspec.ValidationError as error:
        raise EdgeInfiniteError(f"the manifest's {LOOKED_UP} can't be read: {error}") from error
    for table in tables:
        if table.dtype not in _DTYPES or table.offset < 0 or min(table.shape, default=0) < 1:
            raise EdgeInfiniteError(
                f"the manifest's {LOOKED_UP} has no place for {table.name}; export the artifact "
                "again"
            )
    return tables
