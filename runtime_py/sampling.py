"""Chooses the next token from logits in numpy: temperature, then top-k, then top-p.

The order and the kept tokens are those of transformers' logits warpers. V is the vocabulary size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class SamplingOptions:
    """How to sample; the default is greedy.

    Args:
        temperature: divides the logits; 0 takes the most likely token and ignores the rest.
        top_k: sample among the k most likely tokens (and those equal to the k-th); 0 means all.
        top_p: sample among the fewest tokens whose probabilities sum to at least p; 1 means all.
        seed: the same seed gives the same choices; None draws a new one.

    Raises:
        EdgeInfiniteError: a value is out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise EdgeInfiniteError(
                f"temperature is {self.temperature}; give a number of at least 0 (0 is greedy)"
            )
        if self.top_k < 0:
            raise EdgeInfiniteError(
                f"top-k is {self.top_k}; give a whole number of at least 0 (0 keeps all tokens)"
            )
        if not 0 < self.top_p <= 1:
            raise EdgeInfiniteError(
                f"top-p is {self.top_p}; give a number above 0 and at most 1 (1 keeps all tokens)"
            )
        if self.seed is not None and self.seed < 0:
            raise EdgeInfiniteError(f"seed is {self.seed}; give a whole number of at least 0")


class Sampler:
    """Draws tokens. Use one sampler per conversation, so that the seed fixes all its answers."""

    def __init__(self, options: SamplingOptions) -> None:
        self._options = options
        self._random = np.random.default_rng(options.seed)

    def sample(self, logits: np.ndarray) -> int:
        """The next token.

        Args:
            logits: float32 [V].

        Raises:
            EdgeInfiniteError: the logits hold NaN or +inf, or nothing but one number.
        """
        best = int(np.argmax(logits))  # NaN counts as the largest
        if not math.isfinite(float(logits[best])):
            raise EdgeInfiniteError(
                f"the model's logits are not finite ({logits[best]} at token {best}); the artifact "
                "may be damaged: check it with `edgeinfinite verify`"
            )
        if len(logits) > 1 and logits[best] == logits.min():
            raise EdgeInfiniteError(
                f"the model gives every token the same logit ({logits[best]}): its weights may be "
                "all zero; check the artifact with `edgeinfinite verify`"
            )
        if self._options.temperature == 0:
            return best
        tokens, probabilities = candidates(logits, self._options)
        bounds = np.cumsum(probabilities)
        drawn = self._random.random() * bounds[-1]
        return int(tokens[np.searchsorted(bounds[:-1], drawn, side="right")])


def candidates(logits: np.ndarray, options: SamplingOptions) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that sampling may choose, and their probabilities.

    Args:
        logits: float32 [V], finite but for -inf.
        options: with a temperature above 0.

    Returns:
        Token ids, int64 [n], ascending, and probabilities, float64 [n], that sum to 1.
    """
    # The maximum is subtracted first: a tiny temperature must not overflow.
    scaled = (logits.astype(np.float64) - logits.max()) / options.temperature
    tokens = np.arange(len(logits))
    if 0 < options.top_k < len(logits):
        kth = np.partition(scaled, -options.top_k)[-options.top_k]
        tokens = np.flatnonzero(scaled >= kth)
    weights = np.exp(scaled[tokens])
    probabilities = weights / weights.sum()
    if options.top_p < 1:
        kept = _top_p(probabilities, options.top_p)
        tokens, probabilities = tokens[kept], probabilities[kept]
    return tokens, probabilities / probabilities.sum()


def _top_p(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """Indices, ascending, of all but the least likely tokens, which sum to ≤ 1 - top_p."""
    spare = 1 - top_p
    # All tokens this unlikely sum to less than `spare`, so they go. Few are left to sort.
    likely = np.flatnonzero(probabilities > spare / len(probabilities))
    removed = 1 - probabilities[likely].sum()
    ascending = likely[np.argsort(probabilities[likely], kind="stable")]
    kept = removed + np.cumsum(probabilities[ascending]) > spare
    kept[-1] = True
    return np.sort(ascending[kept])
