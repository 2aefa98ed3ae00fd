"""Experts: a token's row goes through those that its router chose; of others nothing is computed.

Transformers hands what experts compute to an interface of its own, with the numbers and weights of
the chosen ones. The function here sorts rows by expert, so that a projection of all experts is one
call, of whatever stands in `edgeinfinite_projections`.

Letters: T tokens, k experts of a token, E experts, n = T k rows, I inputs.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

BY_EXPERT = "edgeinfinite-experts"
"""By which a configuration (`_experts_implementation`) chooses `_by_expert`."""


def _by_expert(
    experts: Any, hidden: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """As transformers' own `grouped_mm`.

    Args:
        experts: the module. Its `edgeinfinite_projections` has for each name of
            `models.experts.projections` what takes rows `[n, I]`, the first expert's first, and how
            many each has, `[E]`, to `[n, O]`.
        hidden: `[T, I]`.
        chosen: `[T, k]` int64, the numbers of each token's experts.
        shares: `[T, k]`, what their results are multiplied with.

    Returns:
        `[T, I]`.
    """
    tokens, each = chosen.shape
    flat, made = chosen.reshape(-1), experts.edgeinfinite_projections
    order = flat.sort().indices
    sizes = (flat.unsqueeze(1) == torch.arange(experts.num_experts)).sum(0)
    rows = hidden[order // each]
    if experts.has_gate:
        inner = experts._apply_gate(made["gate_up_proj"](rows, sizes))
    else:
        inner = experts.act_fn(made["up_proj"](rows, sizes))
    results = made["down_proj"](inner, sizes)
    if experts.has_post_expert_norm:
        results = experts.post_expert_norm(results)
    by_token = results[order.sort().indices].unflatten(0, (tokens, each))
    return (by_token * shares.unsqueeze(2)).sum(1)


ALL_EXPERTS_FUNCTIONS.register(BY_EXPERT, _by_expert)
