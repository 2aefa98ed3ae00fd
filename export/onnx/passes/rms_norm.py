"""Replaces RMSNorm's six operators by one node, SimplifiedLayerNormalization."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import silu

from edgeinfinite.export.onnx import operators

_ROWS = 3


class FusedRmsNorm(nn.Module):
    """x / sqrt(mean(x²) + epsilon) * weight, for tracing.

    Args:
        weight: `[width]`, the factor that the original norm multiplies with.
        epsilon: the original's epsilon.
    """

    def __init__(self, weight: torch.Tensor, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., width]` to the same shape."""
        return operators.rms_norm(x, self.weight, self.epsilon)


class FusedGatedNorm(nn.Module):
    """`norm(x) * silu(gate)`, for tracing."""

    def __init__(self, norm: FusedRmsNorm) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        """Both `[..., width]`, as the result is."""
        return self.norm(x) * silu(gate)


def fuse_rms_norms(model: nn.Module) -> int:
    """Replaces every RMSNorm.

    Returns:
        How many were replaced.
    """
    count = 0
    for parent in list(model.modules()):
        for name, module in parent.named_children():
            fused = _fused(module)
            if fused is not None:
                setattr(parent, name, fused)
                count += 1
    return count


def _fused(module: nn.Module) -> FusedRmsNorm | FusedGatedNorm | None:
    """The module's replacement, None if it isn't an RMSNorm over the last axis."""
    gated = type(module).__name__.endswith("RMSNormGated")
    named = gated or type(module).__name__.endswith("RMSNorm")
    if not named or len(list(module.parameters())) != 1:
        return None
    weight = getattr(module, "weight", None)
    epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1 or not isinstance(epsilon, float):
        return None
    example = torch.linspace(-2, 3, _ROWS * len(weight)).reshape(1, _ROWS, -1).sin() + 0.1
    gate = example.flip(-1)
    wanted = module(example, gate) if gated else module(example)
    for factor in (weight, weight + 1.0):  # Gemma stores its weights minus one
        normed = example * torch.rsqrt(example.pow(2).mean(-1, keepdim=True) + epsilon) * factor
        if torch.allclose(normed * silu(gate) if gated else normed, wanted, rtol=1e-5, atol=1e-6):
            fused = FusedRmsNorm(factor.detach(), epsilon)
            return FusedGatedNorm(fused) if gated else fused
    return None
