"""Gated delta rules and SSMs, for one token as `llama::channelwise_gated_delta_rule`.

Several tokens go by chunks (`chunks.py`): the operator would take them one by one, on one thread.
With a decay a of each dimension of a key it computes, in float32,

    S = a S + k (beta (v - S^T k))^T,    y = S^T q

In the gated delta rule (Yang et al. 2024, arXiv 2412.06464) all dimensions have one decay.

An SSM of Mamba-2 has no delta, S = a S + k v^T. With beta = 2^-64 and v / beta in place of v the
operator computes that as well: what it takes off, beta S^T k, is nothing beside v, and a power of
two changes no digit.

Letters: T tokens, U heads of values, G heads of keys, I dimensions of a key, J of a value, E
channels, R columns of a convolution's state.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.nn.functional import silu, softplus
from transformers import PreTrainedModel

from edgeinfinite.export.executorch import operators  # noqa: F401  (registers llama::*)
from edgeinfinite.export.executorch.chunks import in_chunks
from edgeinfinite.export.graphs.causal_convolution import ACTIVATION
from edgeinfinite.export.graphs.delta_rule import EPSILON, replaced_delta_rule
from edgeinfinite.export.graphs.state_space import replaced_state_space
from edgeinfinite.models.recurrent_states import RecurrentStates

_WITHOUT_DELTA = 2.0**-64
"""Beta of a rule that takes nothing off."""


@contextmanager
def recurrences(model: PreTrainedModel) -> Iterator[dict[str, int]]:
    """Inside, the model's gated delta rules and SSMs run as the operator, or in chunks.

    Yields:
        How many layers have which, by the names of the manifest's passes; none for none.

    Raises:
        EdgeInfiniteError: such layers compute something else.
    """
    with (
        replaced_delta_rule(model, "executorch", _rule, convolution) as rules,
        _states_beside_transformers() as states,
        replaced_state_space(model, "executorch", states.scan, convolution) as ssms,
    ):
        found = {"delta_rule": rules, "state_space": ssms}
        yield {name: count for name, count in found.items() if count}


def convolution(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    **_: Any,
) -> torch.Tensor:
    """For tracing: the state's columns and new ones `[1, E, R + T]`, of which the new are left.

    As products a column of the kernel `[E, R + 1]`, over rows, whose slices are pieces of memory.
    A slice that counts from both ends needs no arithmetic with T.
    """
    assert activation == ACTIVATION
    rows = hidden_states.transpose(1, 2)
    before = weight.shape[1] - 1
    total = rows[:, before:] * weight[:, before]
    for column in range(before):
        total = total + rows[:, column : column - before] * weight[:, column]
    if bias is not None:
        total = total + bias
    return silu(total).transpose(1, 2)


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
) -> tuple[torch.Tensor, torch.Tensor]:
    """For tracing: see `replaced_delta_rule`."""
    assert use_qk_l2norm_in_kernel
    heads, size = value.shape[2], key.shape[3]
    query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + EPSILON) for x in (query, key))
    query = query * size**-0.5
    query, key = _every_head(query, heads), _every_head(key, heads)
    several = query.shape[1] > 1
    return (in_chunks if several else _operator)(query, key, value, g, beta, initial_state)


class _States:
    """Keeps the SSMs' states from transformers, which would write a single token into them.

    A layer without a state takes the same way for one token as for many, through the scan.
    """

    def __init__(self) -> None:
        self._waiting: list[torch.Tensor] = []

    def hide(self, states: RecurrentStates, layer: int) -> None:
        """Keeps a layer's state `[1, U, I, J]` for its scan, which comes next."""
        self._waiting.append(states.recurrent_state_of(layer))

    def scan(
        self,
        hidden_states: torch.Tensor,
        dt: torch.Tensor,
        A: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        *,
        D: torch.Tensor,
        dt_bias: torch.Tensor,
        dt_softplus: bool,
        return_final_states: bool,
        **_: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """For tracing: see `replaced_state_space`."""
        assert dt_softplus and return_final_states
        steps = softplus(dt + dt_bias)
        heads = hidden_states.shape[2]
        key, query = (_every_head(x, heads) for x in (B, C))
        value = hidden_states * steps.unsqueeze(-1)
        decay, state = steps * A, self._waiting.pop()
        if hidden_states.shape[1] > 1:
            result, new = in_chunks(query, key, value, decay, None, state)
        else:
            nothing = steps * 0.0 + _WITHOUT_DELTA
            value = value * (1.0 / _WITHOUT_DELTA)
            result, new = _operator(query, key, value, decay, nothing, state)
        return result + hidden_states * D.unsqueeze(-1), new.transpose(2, 3)


@contextmanager
def _states_beside_transformers() -> Iterator[_States]:
    states, given = _States(), RecurrentStates.get_recurrent_state

    def get(cache: RecurrentStates, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        if not cache.is_ssm(layer_idx):
            return given(cache, layer_idx, state_idx)
        states.hide(cache, layer_idx)
        return None

    with mock.patch.object(RecurrentStates, "get_recurrent_state", get):
        yield states


def _every_head(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Keys `[1, T, G, I]` as `[1, T, U, I]`, each for its heads of values.

    A product with ones, as XNNPACK neither repeats a tensor nor joins it to itself.
    """
    times = heads // x.shape[2]
    return x if times == 1 else (x.unsqueeze(3) * torch.ones(times, 1)).flatten(2, 3)


def _operator(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key `[1, T, U, I]`, value `[1, T, U, J]`, log_decay and beta `[1, T, U]`.

    Returns:
        `[1, T, U, J]` and the state `[1, U, I, J]`.
    """
    by_head = [x.transpose(1, 2) for x in (query, key, value, log_decay.exp(), beta)]
    decay = by_head[3].unsqueeze(-1) * torch.ones(key.shape[-1])
    result, new = torch.ops.llama.channelwise_gated_delta_rule(
        by_head[0], by_head[1], by_head[2], decay, by_head[4], state
    )
    return result.transpose(1, 2), new
