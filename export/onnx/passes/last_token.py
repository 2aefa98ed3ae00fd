"""MOM's last-token rule (arXiv 2504.12526): the last layer's MLP runs for the last token alone.

Only the last token's logits are asked for, and after the last attention no token looks at another.
So the last layer's output projection and MLP take the newest row only. The residual additions
broadcast it, so the earlier rows hold wrong values, but nothing reads them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.layer_inputs import table_of


class LastRow(nn.Module):
    """Runs a module on the newest token.

    Args:
        module: maps `[1, T, I]` to `[1, T, O]`, row by row.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, I]` to `[1, 1, O]`."""
        return self.module(x[:, -1:])


def last_token_only(model: PreTrainedModel) -> bool:
    """Wraps the last layer's `o_proj` and `mlp`.

    Returns:
        False if the last layer's modules have other names, or other linear layers read what they
        make (those of embeddings by layer); then nothing is changed.
    """
    if table_of(model) is not None:
        return False
    last = model.get_decoder().layers[-1]
    attention: Any = getattr(last, "self_attn", None)
    if not isinstance(getattr(attention, "o_proj", None), nn.Module) or not hasattr(last, "mlp"):
        return False
    attention.o_proj = LastRow(attention.o_proj)
    last.mlp = LastRow(last.mlp)
    return True
