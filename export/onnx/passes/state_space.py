"""Replaces Mamba-2's recurrence by one node, LinearAttention, and the convolution before it.

`export/graphs/state_space.py` says when, and what is compared before.

Letters: T tokens, U heads, G heads of B and C, I dimensions of B, J of x.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.graphs.state_space import Result, replaced_state_space
from edgeinfinite.export.onnx import operators


def fused_state_space(model: PreTrainedModel) -> AbstractContextManager[int]:
    """See `replaced_state_space`."""
    return replaced_state_space(model, "onnx", _scan)


def _scan(
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    *,
    D: torch.Tensor,
    dt_bias: torch.Tensor,
    initial_states: torch.Tensor,
    dt_softplus: bool,
    return_final_states: bool,
    **_: Any,
) -> Result:
    """For tracing: x `[1, T, U, J]`, dt `[1, T, U]`, B and C `[1, T, G, I]`; A, D, dt_bias `[U]`.

    Limits of dt are refused before (`models/recurrent_states.py`).

    Returns:
        `[1, T, U, J]` and the state `[1, U, J, I]`, as `initial_states` is laid out.
    """
    assert dt_softplus and return_final_states
    steps = operators.softplus(dt + dt_bias)
    heads = hidden_states.shape[2]
    # As of onnxruntime 1.31 the operator has heads of keys for several of values, 1.29's hasn't.
    key, query = (x.repeat_interleave(heads // x.shape[2], dim=2).flatten(2) for x in (B, C))
    value = (hidden_states * steps.unsqueeze(-1)).flatten(2)
    state = initial_states.transpose(2, 3)
    result, new = operators.decaying_attention(query, key, value, state, steps * A)
    result = result.unflatten(2, hidden_states.shape[2:]) + hidden_states * D.unsqueeze(-1)
    return result, new.transpose(2, 3)
