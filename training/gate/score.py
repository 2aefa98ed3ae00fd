"""Whether the memory helps: unseen texts read with it, without it, and with another text's."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import torch
from transformers import PreTrainedModel

from edgeinfinite.training.gate.data import Samples
from edgeinfinite.training.gate.lengths import Lengths
from edgeinfinite.training.gate.loss import cross_entropy
from edgeinfinite.training.gate.segments import Memory, SegmentState, read_segments

SCORES = ("own_memory", "swapped_memory", "zero_memory", "no_memory")


def held_out_losses(
    model: PreTrainedModel,
    samples: Samples,
    lengths: Lengths,
    count: int,
    progress: Callable[[float], None],
) -> dict[str, list[float]]:
    """Measures nats per token after the first compression.

    Args:
        model: attached, with the gate to measure.
        samples: stretches of unseen documents.
        lengths: how they are cut.
        count: stretches to measure.
        progress: called with the share that is done, 0 to 1.

    Returns:
        For each of `SCORES`, the mean over all stretches. `swapped_memory` reads the memories of
        the next stretch and is left out if there is only one stretch.
    """
    texts = [torch.from_numpy(samples[index]).to(model.device) for index in range(count)]
    losses: dict[str, list[float]] = {name: [] for name in SCORES}
    if count < 2:
        del losses["swapped_memory"]
    done, total = 0, len(losses) * count
    memories: list[list[Memory]] = []

    def measure(name: str, index: int, state: SegmentState, kept: list[Memory] | None) -> None:
        nonlocal done
        losses[name].append(_read(model, texts[index], state, lengths, kept))
        done += 1
        progress(done / total)

    with torch.no_grad():
        for index in range(count):
            memories.append([])
            measure("own_memory", index, SegmentState(model, lengths), memories[-1])
        for index in range(count):
            for name, reads in (("zero_memory", "zero"), ("no_memory", "off")):
                measure(name, index, SegmentState(model, lengths, reads=reads), None)
            if count > 1:
                other = memories[(index + 1) % count]
                state = SegmentState(model, lengths, replaced=other)
                measure("swapped_memory", index, state, None)
    return losses


def _read(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    state: SegmentState,
    lengths: Lengths,
    memories: list[Memory] | None,
) -> float:
    losses = []
    for part in read_segments(model, tokens, state, lengths):
        if memories is not None:  # copied: folding replaces the lists' items
            memories.append((list(state.memory), list(state.memory_norm)))
        losses.append(float(cross_entropy(part.logits, tokens[part.places])))
    return fmean(losses)
