"""A causal LM's logits from the decoder's output, as the model's own code computes them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast


class _Output(BaseModelOutputWithPast):
    """Has nothing but the text's hidden states: no images', no router's."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)


class _Computed(nn.Module):
    """In the decoder's place: its output is known. Its settings are asked for, too (Falcon-H1)."""

    def __init__(self, hidden: torch.Tensor, decoder: nn.Module) -> None:
        super().__init__()
        self._output = _Output(last_hidden_state=hidden)
        self.__dict__["_decoder"] = decoder  # not a part: it would be walked through

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_decoder"], name)

    def forward(self, *_: Any, **__: Any) -> BaseModelOutputWithPast:
        return self._output


def logits_of(model: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """Logits `[1, T, V]`, with what the model does to them afterwards (caps, factors).

    Args:
        model: whose LM head; the decoder isn't run.
        hidden: `[1, T, d]`, the decoder's output for some tokens.
    """
    decoder = model.base_model
    setattr(model, model.base_model_prefix, _Computed(hidden, decoder))
    try:
        logits: torch.Tensor = model(
            input_ids=torch.zeros(hidden.shape[:2], dtype=torch.long), use_cache=False
        ).logits
    finally:
        setattr(model, model.base_model_prefix, decoder)
    return logits
