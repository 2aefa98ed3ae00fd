"""Changes the logits before a token is chosen: bias, then penalties, then a mask.

The order and the repetition penalty are those of transformers' logits processors, presence and
frequency penalties those of OpenAI's API. V is the vocabulary size.

What counts as a repetition is the answer alone, for the repetition penalty (CTRL, arXiv 1909.05858)
as for the others. transformers counts the prompt, too; so a penalty would make the words of a
document unlikely, which are what its questions ask for (experiments/sampling.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeinfinite.runtime_py.answer.sampling_options import SamplingOptions

_LARGEST = 1e30
"""A logit that no other one reaches; infinity would make every probability none."""


def adjusted(
    logits: np.ndarray,
    options: SamplingOptions,
    *,
    answer: Sequence[int] = (),
    allowed: np.ndarray | None = None,
) -> np.ndarray:
    """The logits that a token is chosen from.

    Args:
        logits: float32 [V], the model's.
        options: bias and penalties.
        answer: the answer's tokens so far.
        allowed: bool [V], the tokens that a grammar allows; None allows all.

    Returns:
        The same array if nothing changes it, else a new one, float64 [V].
    """
    if allowed is None and not _changes(options):
        return logits
    changed = logits.astype(np.float64)
    for token, bias in options.logit_bias.items():
        changed[token] += bias
    if options.repetition_penalty != 1:
        seen = np.unique(np.array(answer, dtype=np.int64))
        penalty, values = options.repetition_penalty, changed[seen]
        with np.errstate(over="ignore"):  # of the half that isn't taken, or is bounded
            scaled = np.where(values < 0, values * penalty, values / penalty)
        changed[seen] = np.minimum(scaled, _LARGEST)
    if options.presence_penalty or options.frequency_penalty:
        used, times = np.unique(np.array(answer, dtype=np.int64), return_counts=True)
        changed[used] -= options.presence_penalty + options.frequency_penalty * times
    if allowed is not None:
        changed[~allowed] = -np.inf
    return changed


def _changes(options: SamplingOptions) -> bool:
    penalties = options.presence_penalty or options.frequency_penalty
    return bool(options.logit_bias or options.repetition_penalty != 1 or penalties)
