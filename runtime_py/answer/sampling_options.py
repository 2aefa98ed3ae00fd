"""How to choose tokens, and when to end: `SamplingOptions`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.repetition import NO_DETECTION, RepetitionDetection


@dataclass(frozen=True)
class SamplingOptions:
    """How to sample; the default is greedy.

    Bias and penalties change the logits first and count for greedy answers, too (`penalties.py`).

    Args:
        temperature: divides the logits; 0 takes the most likely token and ignores top-k, top-p and
            min-p.
        top_k: sample among the k most likely tokens (and those equal to the k-th); 0 means all.
        top_p: sample among the fewest tokens whose probabilities sum to at least p; 1 means all.
        min_p: sample among the tokens at least p times as likely as the likeliest; 0 means all.
        repetition_penalty: divides the positive logits of tokens that the answer has, and
            multiplies the negative ones; 1 means none.
        presence_penalty: taken from the logit of every token that the answer has.
        frequency_penalty: taken from a token's logit once for each time that the answer has it.
        logit_bias: added to the logits, by token id.
        repetition_detection: ends an answer that says one piece over and over, unless a grammar
            says when it ends.
        seed: the same seed gives the same choices; None draws a new one.

    Raises:
        EdgeInfiniteError: a value is out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    repetition_detection: RepetitionDetection = NO_DETECTION
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
        if not 0 <= self.min_p <= 1:
            raise EdgeInfiniteError(
                f"min-p is {self.min_p}; give a number from 0 to 1 (0 keeps all tokens)"
            )
        if not (math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0):
            raise EdgeInfiniteError(
                f"repetition-penalty is {self.repetition_penalty}; give a number above 0 "
                "(1 is none)"
            )
        for name in ("presence", "frequency"):
            value = getattr(self, f"{name}_penalty")
            if not math.isfinite(value):
                raise EdgeInfiniteError(f"{name}-penalty is {value}; give a number (0 is none)")
        for token, bias in self.logit_bias.items():
            if token < 0 or not math.isfinite(bias):
                raise EdgeInfiniteError(
                    f"logit-bias of token {token} is {bias}; give token ids of at least 0 and "
                    "finite numbers, such as -100 to forbid a token"
                )
        if self.seed is not None and self.seed < 0:
            raise EdgeInfiniteError(f"seed is {self.seed}; give a whole number of at least 0")

    def check_vocabulary(self, vocabulary: int) -> None:
        """Refuses a bias of a token that the model doesn't have.

        Raises:
            EdgeInfiniteError: `logit_bias` has a token id of V or more.
        """
        token = max(self.logit_bias, default=0)
        if token >= vocabulary:
            raise EdgeInfiniteError(
                f"logit-bias has token {token}, outside the vocabulary of {vocabulary}; "
                "give ids of the artifact's own tokenizer"
            )
