"""A graph whose products with 4-bit weights are of float32, for reading long texts on AVX-512.

`MatMulNBits` rounds what it multiplies to bytes where its `accuracy_level` is 4, as artifacts ask
for. That is fastest for one token, and on ARM for many. On a CPU with AVX-512 onnxruntime 1.31
multiplies 128 tokens 1.3 to 1.9 times as fast in float32 (experiments/int8_products.md). No option
of onnxruntime changes the level, so it is changed in the file's bytes before they are loaded.
Products with 8-bit weights stay: in float32 onnxruntime unpacks these anew for each call.
"""

from __future__ import annotations

import re
from pathlib import Path

_BYTES, _FLOAT32 = b"\x04", b"\x01"
"""Values of `accuracy_level`, each one byte as a varint."""

_INT = rb"\xa0\x01\x02"
"""The end of an `AttributeProto` that holds an integer."""

_PRODUCT = re.compile(
    rb"(\x0a\x04bits\x18\x04" + _INT + rb"\x2a.\x0a\x0ablock_size\x18.{1,2}" + _INT +
    rb"\x2a.\x0a\x0eaccuracy_level\x18)" + _BYTES + rb"(?=" + _INT + rb")",
    re.DOTALL,
)  # fmt: skip
"""Attributes of a product with 4-bit weights, in the order in which `export` writes them."""

_CPU_INFO = Path("/proc/cpuinfo")


_BITS = re.compile(rb"\x0a\x04bits\x18[\x02\x04\x08]" + _INT)
"""An attribute of any product with integer weights."""


def with_float_products(model: bytes) -> bytes | None:
    """A serialized graph with float32 products; None where fewer than half of them would change.

    Gemma 3 270M from a GGUF file of 8 bits has 4 bits in 27 of 91 products, the smaller ones. They
    won nothing that opening another graph didn't cost.
    """
    changed, count = _PRODUCT.subn(lambda found: found[1] + _FLOAT32, model)
    return changed if count and 2 * count >= len(_BITS.findall(model)) else None


def pays_here(cpu_info: Path = _CPU_INFO) -> bool:
    """Whether this CPU has AVX-512; False where the system doesn't say (only Linux does)."""
    try:
        return " avx512f " in cpu_info.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
