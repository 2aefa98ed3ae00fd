"""Lets a back end's operators stand in the place of transformers' gated delta rule.

Transformers computes the rule in padded chunks of 64 tokens, in a loop that can't be traced with
any number of tokens. Its modelling code calls functions of its own module. While a graph is traced,
a back end's replace them, if they compute the same. The convolution in front becomes a product a
column of its kernel (`causal_convolution.py`).

Letters: T tokens, U heads of values, I dimensions of a key, J of a value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.graphs.causal_convolution import (
    ACTIVATION,
    CONVOLUTION,
    convolution,
    convolves,
)
from edgeinfinite.models.recurrent_states import RECURRENT_MIXERS

_RULES = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")
"""For many tokens, and for one."""

EPSILON = 1e-6
"""Under the root of a key's length."""

Result = tuple[torch.Tensor, torch.Tensor | None]


@contextmanager
def replaced_delta_rule(
    model: PreTrainedModel,
    back_end: str,
    rule: Callable[..., Result],
    convolve: Callable[..., torch.Tensor] = convolution,
) -> Iterator[int]:
    """Inside, the model's layers with a gated delta rule run as a back end's operators.

    Args:
        model: a causal LM.
        back_end: its name, for the message.
        rule: with the arguments of transformers', query and key `[1, T, heads, I]`, value
            `[1, T, U, J]`, g and beta `[1, T, U]`, initial_state `[1, U, I, J]`; returns
            `[1, T, U, J]` and the state.
        convolve: what `causal_convolution.convolution` does, in the back end's operators.

    Yields:
        How many layers do.

    Raises:
        EdgeInfiniteError: such layers compute something else, which no operator does.
    """
    mixers = [
        part
        for part in model.get_decoder().modules()
        if type(part).__name__ in RECURRENT_MIXERS
        and hasattr(sys.modules[type(part).__module__], _RULES[0])
    ]
    modules = {sys.modules[type(part).__module__] for part in mixers}
    known = all(
        all(_is_the_rule(getattr(module, name, None)) for name in _RULES) and convolves(module)
        for module in modules
    )
    if not known or any(part.activation != ACTIVATION for part in mixers):
        raise EdgeInfiniteError(
            f"the back end {back_end} can't run {type(model).__name__}: what its layers without "
            f"attention compute isn't the gated delta rule behind {ACTIVATION} that it knows"
        )
    with ExitStack() as patches:
        for module in modules:
            for name in _RULES:
                patches.enter_context(mock.patch.object(module, name, rule))
            patches.enter_context(mock.patch.object(module, CONVOLUTION, convolve))
        yield len(mixers)


def _is_the_rule(function: Callable[..., Result] | None) -> bool:
    """Compares a model's function with the rule, token by token."""
    if function is None:
        return False
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    tokens, heads, inner, outer = 5, 4, 8, 6
    query, key = random(1, tokens, 2, inner), random(1, tokens, 2, inner)
    value, state = random(1, tokens, heads, outer), random(1, heads, inner, outer)
    decay, beta = -random(1, tokens, heads).abs(), random(1, tokens, heads).sigmoid()
    found = function(
        query,
        key,
        value,
        g=decay,
        beta=beta,
        initial_state=state,
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
    )
    normed = (x * (x.square().sum(-1, keepdim=True) + EPSILON).rsqrt() for x in (query, key))
    query, key = (x[0].repeat_interleave(2, dim=1).unsqueeze(-1) for x in normed)
    now, results = state[0], []
    for q, k, v, faded, rate in zip(query, key, value[0], decay[0], beta[0], strict=True):
        now = now * faded.exp()[:, None, None]
        step = (v - (now * k).sum(1)) * rate[:, None]
        now = now + k * step.unsqueeze(1)
        results.append((now * q).sum(1) * inner**-0.5)
    wanted = torch.stack(results)[None], now[None]
    return all(
        one is not None and one.shape == other.shape and torch.allclose(one, other, atol=1e-5)
        for one, other in zip(found, wanted, strict=True)
    )
