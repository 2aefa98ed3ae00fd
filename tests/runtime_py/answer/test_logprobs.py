"""Log-probabilities against torch's."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeinfinite.runtime_py.answer.logprobs import token_logprobs


@given(seed=st.integers(0, 1000), size=st.integers(1, 60), count=st.integers(0, 70))
@settings(deadline=None)
def test_they_are_the_log_softmax_of_the_logits(seed: int, size: int, count: int) -> None:
    logits = (np.random.default_rng(seed).standard_normal(size) * 5).astype(np.float32)
    ours = token_logprobs(logits, size // 2, count)
    expected = torch.from_numpy(logits).double().log_softmax(-1)
    values, ids = expected.topk(min(count, size))
    assert ours.token == size // 2
    assert math.isclose(ours.logprob, float(expected[size // 2]), rel_tol=1e-9, abs_tol=1e-12)
    assert [token for token, _ in ours.top] == ids.tolist()
    np.testing.assert_allclose([value for _, value in ours.top], values, rtol=1e-9, atol=1e-12)


def test_tokens_of_probability_zero_are_not_listed() -> None:
    logits = np.array([0, -np.inf, 0], np.float32)
    assert token_logprobs(logits, 0, 3).top == ((0, -math.log(2)), (2, -math.log(2)))
