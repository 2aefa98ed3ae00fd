"""Lets a back end's operators stand in the place of transformers' Mamba-2 recurrence.

Transformers computes it in padded chunks, which can't be traced with any number of tokens. With C
as query, B as key and dt x as value, the SSM of Dao and Gu 2024, arXiv 2405.21060, is linear
attention with a decay and without a delta rule,

    S = exp(dt A) S + B (dt x)^T,    y = S^T C + D x

As for the delta rule, functions here replace those of transformers' modelling code while a graph is
traced, if they compute the same.

Letters: T tokens, U heads, G heads of B and C, I dimensions of B, J of x.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.nn.functional import softplus
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.graphs.causal_convolution import (
    ACTIVATION,
    CONVOLUTION,
    convolution,
    convolves,
)
from edgeinfinite.models.recurrent_states import SSM_MIXERS

_SCAN = "mamba2_chunk_scan"

Result = tuple[torch.Tensor, torch.Tensor]


@contextmanager
def replaced_state_space(
    model: PreTrainedModel,
    back_end: str,
    scan: Callable[..., Result],
    convolve: Callable[..., torch.Tensor] = convolution,
) -> Iterator[int]:
    """Inside, the model's SSMs run as a back end's operators.

    Args:
        model: a causal LM.
        back_end: its name, for the message.
        scan: with the arguments of transformers', x `[1, T, U, J]`, dt `[1, T, U]`, B and C
            `[1, T, G, I]`, A, D and dt_bias `[U]`, initial_states `[1, U, J, I]`; returns
            `[1, T, U, J]` and the state. Limits of dt are refused before
            (`models/recurrent_states.py`).
        convolve: what `causal_convolution.convolution` does, in the back end's operators.

    Yields:
        How many there are.

    Raises:
        EdgeInfiniteError: they compute something else, which no operator does.
    """
    modules = model.get_decoder().modules()
    mixers: list[Any] = [part for part in modules if type(part).__name__ in SSM_MIXERS]
    codes = {sys.modules[type(part).__module__] for part in mixers}
    known = all(_scans(getattr(code, _SCAN, None)) and convolves(code) for code in codes)
    if not known or any(part.activation != ACTIVATION for part in mixers):
        raise EdgeInfiniteError(
            f"the back end {back_end} can't run {type(model).__name__}: what its SSMs compute "
            f"isn't Mamba-2's recurrence behind {ACTIVATION}, which it knows"
        )
    with ExitStack() as patches:
        for code in codes:
            for name, function in ((_SCAN, scan), (CONVOLUTION, convolve)):
                patches.enter_context(mock.patch.object(code, name, function))
        yield len(mixers)


def _scans(function: Callable[..., Result] | None) -> bool:
    """Compares a model's function with the recurrence, token by token."""
    if function is None:
        return False
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    tokens, heads, groups, inner, outer = 5, 4, 2, 8, 6
    x, steps = random(1, tokens, heads, outer), random(1, tokens, heads)
    key, query = random(1, tokens, groups, inner), random(1, tokens, groups, inner)
    rates, skipped, bias = -random(heads).exp(), random(heads), random(heads)
    state = random(1, heads, outer, inner)
    found = function(
        x,
        steps,
        rates,
        key,
        query,
        chunk_size=4,
        D=skipped,
        z=None,
        return_final_states=True,
        dt_bias=bias,
        dt_softplus=True,
        initial_states=state,
        dt_limit=(0.0, float("inf")),
    )
    steps = softplus(steps + bias)
    now, results = state[0], []
    for at in range(tokens):
        b, c = (one[0, at].repeat_interleave(heads // groups, dim=0) for one in (key, query))
        step = steps[0, at, :, None]
        now = now * (step * rates[:, None]).exp().unsqueeze(-1)
        now = now + (step * x[0, at]).unsqueeze(-1) * b.unsqueeze(1)
        results.append((now * c.unsqueeze(1)).sum(-1) + skipped[:, None] * x[0, at])
    wanted = torch.stack(results)[None], now[None]
    return all(
        one.shape == other.shape and torch.allclose(one, other, atol=1e-5)
        for one, other in zip(found, wanted, strict=True)
    )
