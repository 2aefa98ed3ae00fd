"""One step of transformers' model as it is, with its own cache: the oracle of what we compute."""

from __future__ import annotations

import numpy as np
import torch
from transformers import Cache, PreTrainedModel


@torch.no_grad()
def next_logits(model: PreTrainedModel, cache: Cache, token: int, position: int) -> np.ndarray:
    """Logits `[V]` behind a token at a position, which the cache then holds."""
    output = model(
        input_ids=torch.tensor([[token]]),
        position_ids=torch.tensor([[position]]),
        past_key_values=cache,
        use_cache=True,
    )
    logits: np.ndarray = output.logits[0, -1].numpy()
    return logits
