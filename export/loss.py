"""What a user asks first: how much worse than the checkpoint is the artifact?

Both read one short text, the checkpoint in float32 with full attention, the artifact as it is, one
token after the other, as far as its cache holds everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.export.mixing.head import logits_of
from edgeinfinite.models.checkpoint.stored_loading import release_stored
from edgeinfinite.runtime_py.answer.logprobs import log_probabilities
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

TOKENS = 512

_PART = 64
"""Tokens whose logits are in memory at a time: 512 of Gemma's vocabulary would be 0.5 GB, twice."""

MUCH = 0.05
"""Nats a token above which a loss deserves a warning: all that recall slots win is half of it."""

CHECKPOINT, ARTIFACT, COUNT = "loss:checkpoint", "loss:artifact", "loss:tokens"
"""In the manifest's parity figures: nats a token, and how many tokens."""


@dataclass(frozen=True)
class Losses:
    """Nats a token on the same text of so many tokens."""

    checkpoint: float
    artifact: float
    tokens: float

    @property
    def above(self) -> float:
        """What the artifact loses."""
        return self.artifact - self.checkpoint

    def figures(self) -> dict[str, float]:
        """For the manifest."""
        return {CHECKPOINT: self.checkpoint, ARTIFACT: self.artifact, COUNT: self.tokens}


def told(figures: Mapping[str, float]) -> list[str]:
    """Lines for people about a manifest's parity figures; none where nothing is quantized."""
    if CHECKPOINT not in figures:
        return []
    losses = Losses(figures[CHECKPOINT], figures[ARTIFACT], figures[COUNT])
    lines = [
        f"loss {losses.artifact:.3f} nats a token on {losses.tokens:.0f} tokens, "
        f"{losses.above:+.3f} to the checkpoint"
    ]
    if losses.above > MUCH:
        lines.append(
            f"warning: that is more than {MUCH} nats; try --calibrate default, --max-loss 0.02 or "
            "--quantize int8"
        )
    return lines


def measure_losses(folder: Path, model: PreTrainedModel, text: str) -> Losses:
    """The loss of an artifact and of its checkpoint.

    One after the other, so that both are never in memory.

    Args:
        folder: the artifact.
        model: the checkpoint, attached or not.
        text: its start is read.
    """
    room = min(TOKENS, load_manifest(folder, check_files=False).geometry.capacity - 1)
    tokens = load_tokenizer(folder).encode_text(text[: 16 * TOKENS])[:room]
    checkpoint = _of_checkpoint(model, tokens)
    release_stored(model)
    return Losses(checkpoint, _of_artifact(load_engine(folder), tokens), len(tokens))


def _of_checkpoint(model: PreTrainedModel, tokens: Sequence[int]) -> float:
    ids = torch.tensor([list(tokens)])
    with torch.no_grad():
        hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        pairs = zip(hidden.split(_PART, dim=1), ids[0, 1:].split(_PART), strict=True)
        nats = [
            functional.cross_entropy(logits_of(model, part)[0], labels, reduction="sum")
            for part, labels in pairs
        ]
    return float(torch.stack(nats).sum()) / (len(tokens) - 1)


def _of_artifact(engine: Engine, tokens: Sequence[int]) -> float:
    session = Session(engine)
    nats = []
    for token, following in pairwise(tokens):
        nats.append(-log_probabilities(session.append([token]))[following])
    return float(np.mean(nats))
