"""Sampling against transformers' logits warpers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions, candidates


def _logits(seed: int, vocabulary: int, spread: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.standard_normal(vocabulary) * spread).astype(np.float32)


@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.sampled_from([1, 2, 50, 3000]),
    spread=st.floats(0.01, 10),
    temperature=st.floats(0.1, 3),
    top_k=st.integers(0, 60),
    top_p=st.floats(0.01, 1 - 1e-9) | st.just(1.0),  # nearer to 1 the order of sums decides
    min_p=st.floats(0, 1),
)
@settings(max_examples=300, deadline=None)
def test_candidates_equal_transformers(
    seed: int,
    vocabulary: int,
    spread: float,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
) -> None:
    logits = _logits(seed, vocabulary, spread)
    options = SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    tokens, probabilities = candidates(logits, options)

    scores = torch.from_numpy(logits).double()[None]  # double: no rounding at the bound of top-p
    scores = TemperatureLogitsWarper(temperature)(None, scores)
    if top_k:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(None, scores)
    scores = MinPLogitsWarper(min_p)(None, scores)
    assert tokens.tolist() == scores[0].isfinite().nonzero()[:, 0].tolist()
    expected = scores[0].softmax(-1)[torch.from_numpy(tokens)].numpy()
    np.testing.assert_allclose(probabilities, expected, rtol=1e-6)


def test_ties_with_the_kth_token_stay_as_in_transformers() -> None:
    logits = np.array([1, 3, 3, 3, 0], np.float32)
    tokens, _ = candidates(logits, SamplingOptions(temperature=1, top_k=2))
    kept = TopKLogitsWarper(2)(None, torch.from_numpy(logits)[None])[0].isfinite()
    assert tokens.tolist() == kept.nonzero()[:, 0].tolist() == [1, 2, 3]


def test_draws_follow_the_probabilities() -> None:
    wanted = np.array([0.5, 0.3, 0.15, 0.05])
    logits = np.log(wanted).astype(np.float32)
    sampler = Sampler(SamplingOptions(temperature=1, seed=1))
    counts = np.bincount([sampler.sample(logits) for _ in range(20_000)], minlength=4)
    np.testing.assert_allclose(counts / 20_000, wanted, atol=0.015)


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = np.full(100, -np.inf, np.float32)
    logits[[3, 97]] = 0
    sampler = Sampler(SamplingOptions(temperature=1, seed=1))
    assert {sampler.sample(logits) for _ in range(200)} == {3, 97}


def test_temperature_zero_is_greedy_and_ignores_the_rest() -> None:
    logits = _logits(0, 1000, 3)
    sampler = Sampler(SamplingOptions(temperature=0, top_k=5, top_p=0.5, seed=1))
    assert {sampler.sample(logits) for _ in range(20)} == {int(logits.argmax())}


def test_a_tiny_temperature_does_not_overflow() -> None:
    logits = _logits(0, 1000, 30)
    sampler = Sampler(SamplingOptions(temperature=1e-30, seed=1))
    assert sampler.sample(logits) == int(logits.argmax())


def test_the_same_seed_gives_the_same_draws_and_another_seed_others() -> None:
    logits = _logits(0, 1000, 1)

    def draws(seed: int) -> list[int]:
        sampler = Sampler(SamplingOptions(temperature=1, seed=seed))
        return [sampler.sample(logits) for _ in range(20)]

    assert draws(1) == draws(1) != draws(2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_are_refused(bad: float, temperature: float) -> None:
    logits = _logits(0, 100, 1)
    logits[17] = bad
    with pytest.raises(EdgeInfiniteError, match=r"not finite .* at token 17"):
        Sampler(SamplingOptions(temperature=temperature)).sample(logits)
    with pytest.raises(EdgeInfiniteError, match="not finite"):
        Sampler(SamplingOptions(temperature=temperature)).sample(np.full(9, -np.inf, np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": -1}, "top-k is -1"),
        ({"top_p": 0.0}, "top-p is 0.0"),
        ({"top_p": 1.01}, "top-p is 1.01"),
        ({"min_p": -0.1}, "min-p is -0.1"),
        ({"min_p": float("nan")}, "min-p is nan"),
        ({"repetition_penalty": 0.0}, "repetition-penalty is 0.0"),
        ({"repetition_penalty": float("inf")}, "repetition-penalty is inf"),
        ({"presence_penalty": float("nan")}, "presence-penalty is nan"),
        ({"frequency_penalty": float("-inf")}, "frequency-penalty is -inf"),
        ({"logit_bias": {-1: 1.0}}, "logit-bias of token -1"),
        ({"logit_bias": {3: float("-inf")}}, "logit-bias of token 3 is -inf"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EdgeInfiniteError, match=message):
        SamplingOptions(**options)
