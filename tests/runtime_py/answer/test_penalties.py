"""Bias and penalties against transformers' logits processors and OpenAI's formula."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor, SequenceBiasLogitsProcessor

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.penalties import adjusted
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions

VOCABULARY = 40
IDS = st.integers(0, VOCABULARY - 1)


def _logits(seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(VOCABULARY) * 3).astype(np.float32)


@given(
    seed=st.integers(0, 10_000),
    bias=st.dictionaries(IDS, st.floats(-100, 100, width=32), max_size=5),
    penalty=st.floats(0.1, 3),
    answer=st.lists(IDS, max_size=30),
)
@settings(max_examples=300, deadline=None)
def test_bias_then_repetition_penalty_are_those_of_transformers(
    seed: int, bias: dict[int, float], penalty: float, answer: list[int]
) -> None:
    logits = _logits(seed)
    options = SamplingOptions(logit_bias=bias, repetition_penalty=penalty)
    ours = adjusted(logits, options, answer=answer)

    scores = torch.from_numpy(logits).double()[None]
    ids = torch.tensor([answer], dtype=torch.long)
    if bias:
        pairs = [[[token], value] for token, value in bias.items()]
        scores = SequenceBiasLogitsProcessor(pairs)(ids, scores)
    scores = RepetitionPenaltyLogitsProcessor(penalty)(ids, scores)
    np.testing.assert_allclose(ours, scores[0].numpy(), rtol=1e-12)


@given(answer=st.lists(IDS, max_size=30), presence=st.floats(-2, 2), frequency=st.floats(-2, 2))
@settings(deadline=None)
def test_presence_and_frequency_follow_openais_formula(
    answer: list[int], presence: float, frequency: float
) -> None:
    options = SamplingOptions(presence_penalty=presence, frequency_penalty=frequency)
    ours = adjusted(_logits(), options, answer=answer)
    expected = _logits().astype(float)
    for token, times in Counter(answer).items():
        expected[token] -= times * frequency + (times > 0) * presence
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


def test_a_token_counts_once() -> None:
    options = SamplingOptions(repetition_penalty=2)
    once = adjusted(_logits(), options, answer=[5])
    np.testing.assert_array_equal(once, adjusted(_logits(), options, answer=[5, 5]))


def test_without_penalties_the_logits_are_the_models_own() -> None:
    logits = _logits()
    assert adjusted(logits, SamplingOptions(temperature=1), answer=[1]) is logits


def test_penalties_count_for_greedy_answers() -> None:
    logits = np.array([3, 2.9, 0], np.float32)
    greedy = Sampler(SamplingOptions(repetition_penalty=1.1))
    assert greedy.sample(logits) == 0
    assert greedy.sample(logits, answer=[0]) == 1


def test_only_allowed_tokens_are_drawn_and_top_k_counts_them_alone() -> None:
    allowed = np.zeros(VOCABULARY, bool)
    allowed[[3, 9]] = True
    sampler = Sampler(SamplingOptions(temperature=5, top_k=2, seed=0))
    assert {sampler.sample(_logits(), allowed=allowed) for _ in range(100)} == {3, 9}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_impossible_grammar_is_one_clear_error(temperature: float) -> None:
    logits = _logits()
    logits[3] = -np.inf
    allowed = np.arange(VOCABULARY) == 3
    with pytest.raises(EdgeInfiniteError, match="any token that the grammar allows"):
        Sampler(SamplingOptions(temperature=temperature)).sample(logits, allowed=allowed)


def test_a_bias_of_a_token_outside_the_vocabulary_is_refused() -> None:
    options = SamplingOptions(logit_bias={7: 1.0})
    options.check_vocabulary(8)
    with pytest.raises(EdgeInfiniteError, match="token 7, outside the vocabulary of 7"):
        options.check_vocabulary(7)


def test_the_smallest_penalty_makes_no_logit_infinite() -> None:
    logits = np.array([1.0, 2.0, -1.0, 0.0], np.float32)
    for temperature in (0.0, 0.7, 5e-324):
        options = SamplingOptions(temperature=temperature, top_p=0.9, repetition_penalty=5e-324)
        assert Sampler(options).sample(logits, answer=[0]) == 0
        assert np.isfinite(adjusted(logits, options, answer=[0, 1, 2, 3])).all()
        assert Sampler(options).sample(logits, answer=[2]) in range(4)
