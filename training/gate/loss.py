"""The gate's training losses: predict the text, or match the backbone with full attention.

Letters: T tokens, V vocabulary, k likeliest tokens kept of each distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel

_KEPT = 64
_ROWS = 512
"""Rows of logits processed at once: float32 rows of a whole vocabulary take much memory."""
_LEAST = 1e-7


@dataclass(frozen=True)
class Teacher:
    """The backbone's predictions with full attention, for every token but the first.

    Args:
        tokens: `[T - 1, k]` int64, the k likeliest tokens.
        log_probabilities: `[T - 1, k]` float32, one for each of them.
    """

    tokens: torch.Tensor
    log_probabilities: torch.Tensor

    def at(self, places: slice) -> Teacher:
        """The predictions of some tokens, chosen by their places in the text."""
        rows = slice(places.start - 1, places.stop - 1)
        return Teacher(self.tokens[rows], self.log_probabilities[rows])


def watch_teacher(model: PreTrainedModel, tokens: torch.Tensor) -> Teacher:
    """Reads a text with the backbone's own full attention.

    Args:
        model: attached or not; without a state it runs as the plain backbone.
        tokens: `[T]` int64, at most as many as the model's trained positions.
    """
    cache, kept, logs = DynamicCache(), [], []
    with torch.no_grad():
        for start in range(0, len(tokens) - 1, _ROWS):
            chunk = tokens[start : min(start + _ROWS, len(tokens) - 1)]
            logits = model(input_ids=chunk[None], past_key_values=cache, use_cache=True).logits[0]
            best = functional.log_softmax(logits.float(), -1).topk(min(_KEPT, logits.shape[-1]))
            kept.append(best.indices)
            logs.append(best.values)
    return Teacher(torch.cat(kept), torch.cat(logs))


def loss_of(
    logits: torch.Tensor, places: slice, tokens: torch.Tensor, teacher: Teacher | None
) -> torch.Tensor:
    """Loss on some tokens of a text: divergence from the teacher, or cross-entropy without a
    teacher.

    Args:
        logits: `[T, V]`, the predictions of these tokens, any float dtype.
        places: where these T tokens stand in the text.
        tokens: the text, int64.
        teacher: its predictions for the whole text, or None.
    """
    if teacher is not None:
        return divergence(logits, teacher.at(places))
    return cross_entropy(logits, tokens[places])


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean nats per token.

    Args:
        logits: `[T, V]`, any float dtype; converted to float32 a few rows at a time.
        targets: `[T]` int64.
    """
    parts = [
        checkpoint(_cross_entropy, part, wanted, use_reentrant=False)
        for part, wanted in zip(logits.split(_ROWS), targets.split(_ROWS), strict=True)
    ]
    return torch.stack(parts).sum() / len(targets)


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.float(), targets, reduction="sum")


def divergence(logits: torch.Tensor, teacher: Teacher) -> torch.Tensor:
    """Mean Kullback-Leibler divergence from the teacher, in nats per token.

    All tokens outside the teacher's k likeliest count as one, so this is a lower bound of the full
    divergence. It is zero where both agree.

    Args:
        logits: `[T, V]`, any float dtype.
        teacher: its predictions for these T tokens.
    """
    parts = [
        checkpoint(_divergence, part, tokens, logs, use_reentrant=False)
        for part, tokens, logs in zip(
            logits.split(_ROWS),
            teacher.tokens.split(_ROWS),
            teacher.log_probabilities.split(_ROWS),
            strict=True,
        )
    ]
    return torch.stack(parts).sum() / len(logits)


def _divergence(logits: torch.Tensor, tokens: torch.Tensor, logs: torch.Tensor) -> torch.Tensor:
    own = functional.log_softmax(logits.float(), -1).gather(-1, tokens)
    rest, own_rest = ((1 - x.exp().sum(-1)).clamp(min=_LEAST) for x in (logs, own))
    inside = (logs.exp() * (logs - own)).sum(-1)
    return (inside + rest * (rest.log() - own_rest.log())).sum()
