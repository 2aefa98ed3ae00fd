"""Log-probabilities of an answer's tokens, as OpenAI's API gives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TokenLogprobs:
    """How likely the model found a token: natural logarithms of the softmax of its own logits,
    before bias, penalties, grammar and temperature.

    Attributes:
        token: the chosen token.
        logprob: its log-probability.
        top: the likeliest tokens with theirs, likeliest first; the chosen one needn't be there.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last axis, float64.

    Args:
        logits: `[..., V]`.
    """
    values = logits.astype(np.float64)
    values -= values.max(-1, keepdims=True)
    values -= np.log(np.exp(values).sum(-1, keepdims=True))
    return values


def token_logprobs(logits: np.ndarray, token: int, count: int) -> TokenLogprobs:
    """The log-probabilities of a token and of the `count` likeliest ones.

    Args:
        logits: float32 [V], the model's.
        token: the chosen token.
        count: at least 0; tokens of probability 0 aren't listed.
    """
    values = log_probabilities(logits)
    count = min(count, len(values))
    likeliest = np.argpartition(-values, count - 1)[:count] if count else np.array([], np.int64)
    # A stable order of ties: the lower id first.
    likeliest = likeliest[np.lexsort((likeliest, -values[likeliest]))]
    top = [(int(one), float(values[one])) for one in likeliest if np.isfinite(values[one])]
    return TokenLogprobs(token, float(values[token]), tuple(top))
