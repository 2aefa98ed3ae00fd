"""One packed copy of the weights for all methods of a program.

XNNPACK packs weights into the order that its kernels read, once for every method that uses them.
With the option `weight_cache_enabled` methods share the packed weights. ExecuTorch 1.4 has this
option in C++ (`executorch/runtime/backend/interface.h`: `set_option`) but not in Python, so this
module calls the function in the library that Python has loaded. If the function isn't found, or
options look different from 1.4, everything still works and takes more memory.
"""

from __future__ import annotations

import ctypes
from importlib import metadata
from typing import Any

_BACKEND = b"XnnpackBackend"
_SHARING = b"weight_cache_enabled"
_WORKSPACE = b"workspace_sharing_mode"
_KNOWN = "1.4."
_NAME = "_ZN10executorch7runtime10{}EPKcNS0_4SpanINS0_13BackendOptionEEE"
_IS_BOOL, _IS_INT = 0, 1


class _Option(ctypes.Structure):
    """`BackendOption`: a key, and a variant of bool, int and text of up to 256 bytes."""

    _fields_ = [
        ("key", ctypes.c_char * 64),
        ("value", ctypes.c_int * 64),
        ("kind", ctypes.c_ubyte),
    ]


class _Span(ctypes.Structure):
    """`Span<BackendOption>`."""

    _fields_ = [("data", ctypes.POINTER(_Option)), ("size", ctypes.c_size_t)]


def share_packed_weights(runtime: Any, share: bool) -> bool:
    """Whether methods that are loaded from now on, in this process, share their packed weights.

    When methods share, XNNPACK forgets the constants that it hasn't packed and crashes in the first
    call. So a program may share only if all its constants are packed
    (`export/executorch/report.py`).

    Args:
        runtime: the module `executorch.extension.pybindings._portable_lib`.
        share: whether they should.

    Returns:
        Whether they do.
    """
    if not metadata.version("executorch").startswith(_KNOWN):
        return False
    try:
        library = ctypes.CDLL(runtime.__file__)
        read, write = (_function(library, name) for name in ("get_option", "set_option"))
    except (OSError, AttributeError):
        return False
    if _value(read, _WORKSPACE) is None or _value(read, _SHARING) is None:
        return False
    option = _Option(key=_SHARING, kind=_IS_BOOL)
    option.value[0] = int(share)
    write(_BACKEND, _Span(ctypes.pointer(option), 1))
    return _value(read, _SHARING) == 1


def _function(library: ctypes.CDLL, name: str) -> Any:
    function = library[_NAME.format(name)]
    function.argtypes, function.restype = [ctypes.c_char_p, _Span], ctypes.c_int
    return function


def _value(read: Any, key: bytes) -> int | None:
    """An option's value; None if there is no such option, or it is of another kind."""
    option = _Option(key=key, kind=255)
    if read(_BACKEND, _Span(ctypes.pointer(option), 1)) != 0:
        return None
    if option.kind != (_IS_INT if key == _WORKSPACE else _IS_BOOL):
        return None
    return option.value[0] & 0xFF if option.kind == _IS_BOOL else option.value[0]
