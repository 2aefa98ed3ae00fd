"""The short convolution before a delta rule or an SSM, as a product a column of its kernel.

Over rows: onnxruntime's Conv takes longer for one token, `CausalConvWithState` for many
(experiments/delta_layer.md). XNNPACK has no convolution over a dynamic number of tokens.

Letters: T tokens, E channels, R columns of a convolution's state.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import silu

CONVOLUTION = "causal_conv1d_fn"
"""What transformers' modelling code calls it."""

ACTIVATION = "silu"
"""Behind the convolution."""


def convolution(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    **_: Any,
) -> torch.Tensor:
    """For tracing: the state's columns and new ones `[1, E, R + T]`, of which the new are left."""
    assert activation == ACTIVATION
    rows = hidden_states.transpose(1, 2)
    columns = weight.shape[1]
    count = rows.shape[1] - columns + 1
    products = [rows[:, i : i + count] * weight[:, i] for i in range(columns)]
    total = products[0] if bias is None else products[0] + bias
    for product in products[1:]:
        total = total + product
    return silu(total).transpose(1, 2)


def convolves(module: Any) -> bool:
    """Whether the module's convolution is the one here, of columns that have a state before."""
    function = getattr(module, CONVOLUTION, None)
    if function is None:
        return False
    generator = torch.Generator().manual_seed(0)
    joined, weight, bias = (torch.randn(s, generator=generator) for s in ((1, 6, 8), (6, 4), (6,)))
    return all(
        torch.allclose(
            function(joined, weight, given, activation=ACTIVATION)[:, :, 3:],
            convolution(joined, weight, given, activation=ACTIVATION),
            atol=1e-5,
        )
        for given in (None, bias)
    )
