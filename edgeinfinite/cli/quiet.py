"""Keeps messages of other packages that a user of ours can't act on off the terminal, by name."""

from __future__ import annotations

import logging
import warnings

_LOGGED = {
    # Its GPU kernels, where there is no such GPU.
    "torchao": "Failed to load",
    # torchao registers enums in a way that torch is about to give up.
    "torch.utils._pytree": "is an Enum subclass",
}
_WARNED = (
    "_check_is_size will be removed",  # executorch's custom operators
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",  # torch.export, by torch's own code
)


def quieten() -> None:
    """Filters known messages; everything else these packages say comes through."""
    for logger, text in _LOGGED.items():
        logging.getLogger(logger).addFilter(_Without(text))
    for text in _WARNED:
        warnings.filterwarnings("ignore", message=f".*{text}")


class _Without(logging.Filter):
    """Lets everything pass but messages that hold a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def filter(self, record: logging.LogRecord) -> bool:
        return self._text not in str(record.msg)
