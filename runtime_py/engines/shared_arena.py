"""One pool of memory for all of this package's onnxruntime sessions in a process.

By default each session keeps the memory of its largest call for the next one, and takes it in steps
of powers of two. An engine has two sessions that never run at once, and needs what the larger
takes. Gemma 3 270M's process peaks 16 MB lower after 2,048 tokens (docs/adapt.md). Sessions of the
application that embeds us aren't concerned: a session takes the pool only if its options say so.
"""

from __future__ import annotations

import functools
from typing import Any

_SAME_AS_REQUESTED = 1
"""Takes what a call needs from the system; 0 would round it up to a power of two."""

_DEFAULT = -1


def use_shared_arena(ort: Any, options: Any) -> None:
    """Makes a session with these options take its memory from the shared pool."""
    _register(ort)
    options.add_session_config_entry("session.use_env_allocators", "1")


@functools.cache
def _register(ort: Any) -> None:
    kind, memory = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, ort.OrtMemType.DEFAULT
    info = ort.OrtMemoryInfo("Cpu", kind, 0, memory)
    arena = ort.OrtArenaCfg(0, _SAME_AS_REQUESTED, _DEFAULT, _DEFAULT)
    ort.create_and_register_allocator(info, arena)
