"""Shorter chunks for Mamba-2's scan, where transformers computes it in PyTorch.

It reads a text in chunks, and pads what it is given to whole ones. Within a chunk every token is
set against every other, for each head. So a token takes time in proportion to the chunk's length,
256 in most configurations, which suits a GPU's kernel; a single token takes as long as 256. The
sums are the same whatever the length.
"""

from __future__ import annotations

from torch import nn

LENGTH = 16
"""Tokens. With Granite 4 H 1B's heads a chunk's own part is then below that of carrying its state
on; the kernels of `mamba_ssm`, where they are installed, take no shorter one."""


def shorten_scans(model: nn.Module) -> None:
    """Makes every SSM of a model read chunks of at most `LENGTH` tokens."""
    for module in model.modules():
        length = getattr(module, "chunk_size", None)
        if hasattr(module, "A_log") and isinstance(length, int):
            module.chunk_size = min(length, LENGTH)  # type: ignore[assignment]
