"""The fit of networks to the attention that later text pays.

Letters: L layers, K KV heads, n pairs, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from edgeinfinite.models.recall.scorer import PairNetwork
from edgeinfinite.training.scorer.held_out import score_of
from edgeinfinite.training.scorer.options import ScorerOptions


def fit_networks(
    networks: Sequence[PairNetwork],
    inputs: torch.Tensor,
    wanted: torch.Tensor,
    options: ScorerOptions,
    progress: Callable[[float, float], None],
) -> None:
    """Huber regression of all layers and heads, each on its own pairs, with AdamW.

    Args:
        networks: one for each layer, with random weights; fitted in place.
        inputs: `[L, K, n, 2D]` float16.
        wanted: `[L, K, n]` float32, logarithms of attention.
        options: see there.
        progress: called with the share of the steps that are done, and the loss.
    """
    for network, values, targets in zip(networks, inputs, wanted, strict=True):
        numbers = values.float()
        network.mean.copy_(numbers.mean(dim=1, keepdim=True))
        network.deviation.copy_(numbers.std(dim=1, keepdim=True).clamp(min=1e-3))
        network.b2.data.copy_(targets.mean(dim=1)[:, None, None])
    generator, count = torch.Generator().manual_seed(options.seed), inputs.shape[2]
    optimizer = torch.optim.AdamW(
        [p for network in networks for p in network.parameters()],
        lr=options.learning_rate,
        weight_decay=0.01,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    for step in range(options.steps):
        chosen = torch.randint(count, (min(options.batch, count),), generator=generator)
        total = 0.0
        for layer, network in enumerate(networks):
            score = score_of(network, inputs[layer][:, chosen])
            loss = _fit_loss(score, wanted[layer][:, chosen], options.emphasis)
            loss.backward()
            total += float(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        progress((step + 1) / options.steps, total / len(networks))
    for network in networks:
        network.requires_grad_(False)


def _fit_loss(score: torch.Tensor, wanted: torch.Tensor, emphasis: float) -> torch.Tensor:
    """Huber loss of scores `[K, n]`, pairs weighted by attention ** emphasis, the mean weight 1."""
    weight = (emphasis * wanted).exp()
    weight = weight / weight.mean(dim=1, keepdim=True)
    return (weight * functional.huber_loss(score, wanted, reduction="none")).mean()
