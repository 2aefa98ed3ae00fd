"""Delta rules and SSMs in chunks, against the recurrences that they stand for, token by token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from hypothesis import given, settings
from hypothesis import strategies as st

from edgeinfinite.export.executorch.chunks import MOST_TOKENS, in_chunks
from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.graphs.tokens import EXAMPLE_TOKENS
from edgeinfinite.runtime_py.engines import executorch_engine

HEADS, INNER, OUTER = 3, 8, 6
Parts = tuple[torch.Tensor, ...]


def parts(tokens: int, strongest: float = 1.0) -> Parts:
    """Query, key, value, log of the decay, rate and state; some heads hardly forget."""
    generator = torch.Generator().manual_seed(tokens)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(1, *shape, generator=generator)

    key = normalize(drawn(tokens, HEADS, INNER), dim=-1)
    strength = torch.logspace(-5, 0, HEADS) * strongest
    decay = -drawn(tokens, HEADS).abs() * strength
    rate = drawn(tokens, HEADS).sigmoid()
    value = drawn(tokens, HEADS, OUTER)
    return drawn(tokens, HEADS, INNER), key, value, decay, rate, drawn(HEADS, INNER, OUTER)


def token_by_token(given: Parts, *, delta: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The recurrence of `recurrences.py`, in float64."""
    query, key, value, decay, rate, state = (x[0].double() for x in given)
    results = []
    for q, k, v, fading, b in zip(query, key, value, decay.exp(), rate, strict=True):
        state = state * fading[:, None, None]
        if delta:
            v = (v - (state * k.unsqueeze(2)).sum(1)) * b[:, None]
        state = state + k.unsqueeze(2) * v.unsqueeze(1)
        results.append((state * q.unsqueeze(2)).sum(1))
    return torch.stack(results)[None], state[None]


def assert_is_the_recurrence(
    compute: Callable[[Parts], tuple[torch.Tensor, ...]], given: Parts, *, delta: bool
) -> None:
    for found, wanted in zip(compute(given), token_by_token(given, delta=delta), strict=True):
        assert found.shape == wanted.shape
        assert (found - wanted).abs().max() <= 2e-6 * wanted.abs().max()


@settings(deadline=None, max_examples=40)
@given(
    tokens=st.integers(2, MOST_TOKENS),
    strongest=st.sampled_from([1e-3, 1.0, 100.0]),
    delta=st.booleans(),
)
def test_any_number_of_tokens_gives_the_recurrence(
    tokens: int, strongest: float, delta: bool
) -> None:
    """Decays of up to e^-100 a token beside such of e^-0.00001: sums of their own lose neither."""

    def compute(given: Parts) -> tuple[torch.Tensor, ...]:
        *others, rate, state = given
        return in_chunks(*others, rate if delta else None, state)

    assert_is_the_recurrence(compute, parts(tokens, strongest), delta=delta)


def test_weak_decays_behind_a_strong_one_are_kept() -> None:
    given = parts(24)
    given[3][:, :4] = -5_000.0
    given[3][:, 4:] = -1e-3
    assert_is_the_recurrence(lambda given: in_chunks(*given), given, delta=True)


@pytest.mark.parametrize("apart", [0.0, 0.1, 1.0])
def test_keys_that_are_alike_lose_nothing(apart: float) -> None:
    """As of a text that repeats itself: their effect on each other has powers of 10^8."""
    query, key, value, _, _, state = parts(MOST_TOKENS)
    key = normalize(key[:, :1] + apart * key, dim=-1)
    decay = torch.full(key.shape[:3], -1e-4)
    alike = query, key, value, decay, torch.ones(key.shape[:3]), state
    assert_is_the_recurrence(lambda given: in_chunks(*given), alike, delta=True)


class Rule(nn.Module):
    """One input for all that comes by token, so that their number is one symbol, as in a model."""

    def __init__(self, *, delta: bool) -> None:
        super().__init__()
        self.delta = delta

    def forward(self, joined: torch.Tensor, state: torch.Tensor) -> list[torch.Tensor]:
        sizes = [INNER, INNER, OUTER, 1, 1]
        query, key, value, decay, rate = joined.split_with_sizes(sizes, dim=-1)
        beta = rate.squeeze(3) if self.delta else None
        return list(in_chunks(query, key, value, decay.squeeze(3), beta, state))


def joined(given: Parts) -> list[torch.Tensor]:
    *wide, decay, rate, state = given
    return [torch.cat((*wide, decay.unsqueeze(3), rate.unsqueeze(3)), dim=-1), state]


@pytest.mark.parametrize("delta", [True, False])
def test_one_program_reads_any_number_of_tokens(tmp_path: Path, delta: bool) -> None:
    """Also multiples of 16, to which nothing is filled up, and fewer after more."""
    tokens = {1: torch.export.Dim("T", min=2, max=MOST_TOKENS)}
    with torch.no_grad():
        program = torch.export.export(
            Rule(delta=delta),
            tuple(joined(parts(EXAMPLE_TOKENS))),
            dynamic_shapes=(tokens, None),
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )
    assert run_passes(program)["recurrent_layers"] == 1
    write_program(lower({"rule": program}), tmp_path / "rule.pte")
    _, runtime = executorch_engine._executorch()
    loaded = runtime._load_program(str(tmp_path / "rule.pte"))
    method = loaded.load_method("rule")
    for count in (2, 15, 16, 17, 255, 256, 3, 128, 100):
        for strongest in (1.0, 1000.0):
            given = parts(count, strongest)
            assert_is_the_recurrence(lambda given: method.call(joined(given)), given, delta=delta)
