"""MLPs that keep the largest activations alone (Gemma 3n), with a constant in place of a quantile.

    relu(x - (mean(x) + std(x) q))    q = the quantile of the normal distribution for the share

transformers computes q with the inverse of the error function, anew in each call, for which graphs
have no operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributions import Normal

_FUNCTION = "_gaussian_topk"


def constant_quantiles(model: nn.Module) -> int:
    """Puts the constant in the place of the computation, where both give the same.

    Args:
        model: a copy, whose modules are changed.

    Returns:
        In how many MLPs.
    """
    changed = 0
    for module in model.modules():
        original: Any = getattr(module, _FUNCTION, None)
        share = getattr(module, "activation_sparsity", None)
        if original is None or not share:
            continue
        above = _above(float(Normal(0, 1).icdf(torch.tensor(share))))
        x = torch.randn(1, 3, 64, generator=torch.Generator().manual_seed(0))
        if torch.allclose(above(x), original(x), atol=1e-6):
            module.__dict__[_FUNCTION] = above
            changed += 1
    return changed


def _above(quantile: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def above(x: torch.Tensor) -> torch.Tensor:
        """How far `[..., I]` is above the quantile, 0 where it is below."""
        mean = x.mean(-1, keepdim=True)
        deviation = x.std(-1, keepdim=True, unbiased=False)
        return torch.relu(x - (mean + deviation * quantile))

    return above
