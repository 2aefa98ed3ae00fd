"""Replaces the gated delta rule by one node, LinearAttention, and the convolution before it.

`export/graphs/delta_rule.py` says when, and what is compared before.

Letters: T tokens, U heads of values, I dimensions of a key, J of a value.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.graphs.delta_rule import EPSILON, Result, replaced_delta_rule
from edgeinfinite.export.onnx import operators


def fused_delta_rule(model: PreTrainedModel) -> AbstractContextManager[int]:
    """See `replaced_delta_rule`."""
    return replaced_delta_rule(model, "onnx", _rule)


def _rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor,
    *,
    use_qk_l2norm_in_kernel: bool,
    **_: Any,
) -> Result:
    """For tracing: query and key `[1, T, heads, I]`, value `[1, T, U, J]`, g and beta `[1, T, U]`.

    Returns:
        `[1, T, U, J]` and the state `[1, U, I, J]`.
    """
    assert use_qk_l2norm_in_kernel
    heads, size = value.shape[2], key.shape[3]
    # RMSNorm divides by the root of a mean, not of a sum.
    weight, epsilon = torch.full((size,), size**-0.5), EPSILON / size
    query, key = (operators.rms_norm(x, weight, epsilon) for x in (query, key))
    if heads != key.shape[2]:  # as of onnxruntime 1.31 the operator has them, 1.29's hasn't
        query, key = (x.repeat_interleave(heads // x.shape[2], dim=2) for x in (query, key))
    rows = [x.flatten(2) for x in (query, key, value)]
    result, state = operators.gated_delta_rule(
        rows[0], rows[1], rows[2], initial_state, g, beta, scale=size**-0.5
    )
    return result.unflatten(2, value.shape[2:]), state
