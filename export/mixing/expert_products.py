"""Products of experts that somebody watches, in the place of transformers' own.

Letters: E experts, n rows of all of them, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from edgeinfinite.export.graphs.experts import BY_EXPERT
from edgeinfinite.models.experts import as_rows, expert_modules, projections

Watch = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
"""Called with rows `[n, I]`, the first expert's first, how many each expert has, `[E]`, and what
came of them, `[n, O]`."""


@contextmanager
def watched_experts(model: nn.Module, watch: Callable[[str], Watch]) -> Iterator[None]:
    """While it is open, experts compute what they did, and each projection's products are seen.

    Args:
        model: comes back as it was; without experts nothing happens.
        watch: called with the name of a projection's parameter.
    """
    found = list(expert_modules(model))
    own = {id(part.config): (part.config, part.config._experts_implementation) for _, part in found}
    for path, part in found:
        part.edgeinfinite_projections = {
            name: partial(_products, part, name, watch(f"{path}.{name}"))
            for name in projections(part)
        }
        part.config._experts_implementation = BY_EXPERT
    try:
        yield
    finally:
        for config, implementation in own.values():
            config._experts_implementation = implementation
        for _, part in found:
            del part.edgeinfinite_projections


def _products(
    part: Any, name: str, watch: Watch, rows: torch.Tensor, sizes: torch.Tensor
) -> torch.Tensor:
    """Rows `[n, I]` to `[n, O]`: x Wᵀ + b with each row's expert's own."""
    weights = as_rows(part, getattr(part, name)).unflatten(0, (part.num_experts, -1))
    biases = getattr(part, f"{name}_bias", None)
    result = torch.cat(
        [
            functional.linear(of_expert, weights[e], None if biases is None else biases[e])
            for e, of_expert in enumerate(rows.split(sizes.tolist()))
        ]
    )
    watch(rows, sizes, result)
    return result
