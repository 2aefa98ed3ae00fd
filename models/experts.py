"""Experts of a backbone: the modules that hold them, and their weights as matrices.

Transformers' own classes hold the weights of all experts of a layer in one parameter a projection,
and hand what they compute to an interface (`transformers.integrations.moe`), as attention does.

Letters: E experts, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

PROJECTION = r"\.experts\.(gate_up_proj|up_proj|down_proj)$"
"""What the names of such parameters end with."""


def experts_of(model: PreTrainedModel) -> str | None:
    """The class of what holds a layer's experts; None if its MLPs are dense."""
    for layer in model.get_decoder().layers:
        for name, module in layer.named_modules():
            if name.split(".")[-1] == "experts" or type(module).__name__.endswith("Experts"):
                return type(module).__name__
    return None


def calls_interface(module: nn.Module) -> bool:
    """Whether a module of experts hands what they compute to transformers' interface."""
    known = ("has_gate", "has_bias", "has_post_expert_norm", "is_transposed", "num_experts")
    return all(hasattr(module, name) for name in (*known, "down_proj"))


def expert_modules(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Path and module of each layer's experts that call the interface."""
    for path, module in list(model.named_modules()):
        if calls_interface(module):
            yield path, module


def projections(experts: Any) -> tuple[str, str]:
    """The names of a module's two parameters `[E, O, I]`, or `[E, I, O]` if it is transposed."""
    return ("gate_up_proj" if experts.has_gate else "up_proj", "down_proj")


def as_rows(experts: Any, weight: torch.Tensor) -> torch.Tensor:
    """A projection's parameter as a matrix `[E * O, I]`, of one expert after the other."""
    return (weight.transpose(1, 2) if experts.is_transposed else weight).flatten(0, 1)


def from_rows(experts: Any, rows: torch.Tensor) -> torch.Tensor:
    """What `as_rows` was made of."""
    whole = rows.unflatten(0, (experts.num_experts, -1))
    return whole.transpose(1, 2) if experts.is_transposed else whole
