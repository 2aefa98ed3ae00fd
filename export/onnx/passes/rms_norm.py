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
    """`norm(x) * silu(gate)` or `norm(x * silu(gate))`, for tracing.

    Args:
        norm: over all channels.
        gate_first: whether the gate is inside.
        groups: which are normed each by itself; then the norm's weight follows as a product.
    """

    def __init__(self, norm: FusedRmsNorm, gate_first: bool = False, groups: int = 1) -> None:
        super().__init__()
        self.norm = norm
        self.gate_first = gate_first
        self.groups = groups

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        """Both `[..., width]`, as the result is."""
        if self.gate_first:
            return self._normed(x * silu(gate))
        return self._normed(x) * silu(gate)

    def _normed(self, x: torch.Tensor) -> torch.Tensor:
        if self.groups == 1:
            return self.norm(x)
        parts = x.unflatten(-1, (self.groups, -1))
        ones = torch.ones(parts.shape[-1])
        return operators.rms_norm(parts, ones, self.norm.epsilon).flatten(-2) * self.norm.weight


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
    if gated:
        return _fused_gated(module, weight, epsilon, example)
    wanted = module(example)
    for factor in (weight, weight + 1.0):  # Gemma stores its weights minus one
        if _alike(_normed(example, epsilon) * factor, wanted):
            return FusedRmsNorm(factor.detach(), epsilon)
    return None


def _fused_gated(
    module: nn.Module, weight: torch.Tensor, epsilon: float, example: torch.Tensor
) -> FusedGatedNorm | None:
    """The replacement of a norm that has a gate."""
    gate = example.flip(-1)
    wanted = module(example, gate)
    norm = FusedRmsNorm(weight.detach(), epsilon)
    width = getattr(module, "group_size", len(weight))
    own: int = getattr(module, "n_groups", None) or len(weight) // width
    for groups in dict.fromkeys((1, own)):
        for gate_first in (False, True):
            x = example * silu(gate) if gate_first else example
            normed = _normed(x.unflatten(-1, (groups, -1)), epsilon).flatten(-2) * weight
            if _alike(normed if gate_first else normed * silu(gate), wanted):
                return FusedGatedNorm(norm, gate_first, groups)
    return None


def _normed(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)


def _alike(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)
