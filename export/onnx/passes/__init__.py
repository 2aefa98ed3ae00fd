"""What is swapped in a backbone before it is traced. Each pass is one file and changes no number.

A pass works on a copy of the model that shares its weights (`shared_copy`), leaves alone what it
doesn't recognise, and proves what it replaces on random numbers instead of trusting class names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from transformers import PreTrainedModel


def shared_copy(
    model: PreTrainedModel, replaced: Mapping[int, torch.Tensor] | None = None
) -> PreTrainedModel:
    """The same modules again, over the same tensors.

    Args:
        replaced: other tensors in place of some, by the `id` of the old one.
    """
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, {**tensors, **(replaced or {})})
