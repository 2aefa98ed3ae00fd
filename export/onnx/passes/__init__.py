"""Passes that rewrite a backbone or its graph. Each is one file and changes no result.

A pass over modules works on a copy of the model that shares its weights (`shared_copy`). It leaves
alone what it doesn't recognise. Before it replaces a module or function it compares both on sample
numbers, instead of trusting class names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from transformers import PreTrainedModel


def shared_copy(
    model: PreTrainedModel, replaced: Mapping[int, torch.Tensor] | None = None
) -> PreTrainedModel:
    """A copy of the model's modules that shares its tensors.

    Args:
        replaced: new tensors for some of the old ones, by the `id` of the old one.
    """
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, {**tensors, **(replaced or {})})
