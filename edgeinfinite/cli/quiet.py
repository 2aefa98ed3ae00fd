"""Hides known messages of other packages that our users can't act on."""

from __future__ import annotations

import logging
import warnings

_LOGGED = {
    # Its GPU kernels don't load without a GPU.
    "torchao": "Failed to load",
    # torchao registers enums in a way that torch deprecates.
    "torch.utils._pytree": "is an Enum subclass",
}
_WARNED = (
    "_check_is_size will be removed",  # executorch's custom operators
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",  # torch.export, by torch's own code
)


def quieten() -> None:
    """Filters known messages; all other messages of these packages are shown."""
    for logger, text in _LOGGED.items():
        logging.getLogger(logger).addFilter(_Without(text))
    for text in _WARNED:
        warnings.filterwarnings("ignore", message=f".*{text}")


class _Without(logging.Filter):
    """Passes every message that doesn't contain a given text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def filter(self, record: logging.LogRecord) -> bool:
        return self._text not in str(record.msg)
