"""The interface of methods that read a text and measure predictions. V vocabulary, T tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch


@dataclass(frozen=True)
class Prediction:
    """How well tokens were predicted, each from all tokens before it.

    Args:
        nats: `[n]` float64, minus the logarithm of the token's probability.
        best: `[n]` bool, whether the token was the likeliest one.
    """

    nats: np.ndarray
    best: np.ndarray


@dataclass(frozen=True)
class Footprint:
    """Bytes of the state while one text was read.

    Args:
        held: at the end of what was read.
        peak: the most at any time.
        average: over the tokens read.
    """

    held: int
    peak: int
    average: int


class TextReader(Protocol):
    """Such as `methods.Reader`, `artifact_reader.ArtifactReader`, `CompressedPromptReader`."""

    @property
    def state_bytes(self) -> int:
        """Bytes of the state."""
        ...

    @property
    def footprint(self) -> Footprint:
        """Bytes of the state over time."""
        ...

    @property
    def logits(self) -> np.ndarray:
        """`[V]` float32 after the last token read."""
        ...

    def skip(self, tokens: Sequence[int], progress: Callable[[int], None] | None = None) -> None:
        """Reads on without measuring."""
        ...

    def read(self, tokens: Sequence[int]) -> Prediction:
        """Reads on and measures."""
        ...

    def end_prompt(self) -> None:
        """Says that the prompt ends here: methods that compress it do so now."""
        ...

    def save(self) -> Callable[[], None]:
        """Saves the state; the returned function restores it, any number of times."""
        ...


def measured(logits: torch.Tensor, ids: torch.Tensor, last: torch.Tensor | None) -> Prediction:
    """How well T tokens were predicted.

    Args:
        logits: `[T, V]` after each token.
        ids: `[T]` int64.
        last: `[1, V]` before the first token; None, at the start of a text, gives nan.
    """
    first = torch.full_like(logits[:1], float("nan")) if last is None else last
    predicting = torch.cat((first, logits[:-1]))
    nats = predicting.logsumexp(-1) - predicting.gather(-1, ids.unsqueeze(-1))[:, 0]
    best = predicting.argmax(-1) == ids
    return Prediction(nats.cpu().double().numpy(), best.cpu().numpy())
