"""Chooses the next token from logits in numpy: penalties, temperature, top-k, top-p, min-p.

The order and the kept tokens are those of transformers' logits processors and warpers. V is the
vocabulary size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.penalties import adjusted
from edgeinfinite.runtime_py.answer.sampling_options import SamplingOptions

__all__ = ["Sampler", "SamplingOptions", "candidates"]


class Sampler:
    """Draws tokens. Use one sampler per conversation, so that the seed fixes all its answers."""

    def __init__(self, options: SamplingOptions) -> None:
        self.options = options
        self._random = np.random.default_rng(options.seed)

    def sample(
        self,
        logits: np.ndarray,
        *,
        answer: Sequence[int] = (),
        allowed: np.ndarray | None = None,
    ) -> int:
        """The next token.

        Args:
            logits: float32 [V].
            answer: the answer's tokens so far; penalties count them.
            allowed: bool [V], the tokens that a grammar allows; None allows all.

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
        changed = adjusted(logits, self.options, answer=answer, allowed=allowed)
        if changed is not logits:
            logits, best = changed, int(np.argmax(changed))
        if logits[best] == -np.inf:
            raise EdgeInfiniteError(
                "the model gives no probability to any token that the grammar allows; "
                "change the schema or the pattern"
            )
        if self.options.temperature == 0:
            return best
        tokens, probabilities = candidates(logits, self.options)
        bounds = np.cumsum(probabilities)
        drawn = self._random.random() * bounds[-1]
        return int(tokens[np.searchsorted(bounds[:-1], drawn, side="right")])


def candidates(logits: np.ndarray, options: SamplingOptions) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that sampling may choose, and their probabilities.

    Args:
        logits: float32 or float64 [V], finite but for -inf; penalties are in them already.
        options: with a temperature above 0.

    Returns:
        Token ids, int64 [n], ascending, and probabilities, float64 [n], that sum to 1.
    """
    # The maximum is subtracted first: a tiny temperature must not overflow.
    with np.errstate(over="ignore"):  # far below it, -inf is as good
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
    if options.min_p > 0:
        kept = np.flatnonzero(probabilities >= options.min_p * probabilities.max())
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
