"""Optimizer steps on the gates: learning rates, clipping, and a row of metrics per step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch
from accelerate import Accelerator

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.memory.gate import MemoryGate

_WARM_UP = 0.05
_LEAST_RATE = 0.1
_LARGEST_NORM = 1.0


class GateSteps:
    """AdamW on the gates of a model; g and c have their own learning rate.

    Args:
        gates: the gates of all layers, on their final device.
        rates: peak rates of all parameters but g and c, then of g and c; both fall along a cosine.
        planned: total number of steps.
        accelerator: averages gradients over processes; None for a single process.

    Attributes:
        parameters: all trained parameters.
        optimizer: the AdamW instance.
        done: steps so far.
    """

    def __init__(
        self,
        gates: Sequence[MemoryGate],
        rates: tuple[float, float],
        planned: int,
        accelerator: Accelerator | None = None,
    ) -> None:
        self._gates, self._planned = gates, planned
        self._accelerator = accelerator or Accelerator()
        named = [item for gate in gates for item in gate.named_parameters()]
        openings = [p for name, p in named if name in ("g", "c")]
        weights = [p for name, p in named if name not in ("g", "c")]
        self.parameters = weights + openings
        rate, opening_rate = rates
        self.optimizer = torch.optim.AdamW(
            [
                {"params": weights, "peak": rate},
                {"params": openings, "peak": opening_rate},
            ],
            betas=(0.9, 0.99),
            weight_decay=0.0,
        )
        self.done = 0

    @property
    def share_done(self) -> float:
        """Share of the planned steps that is done."""
        return self.done / self._planned

    def step(self, losses: Sequence[torch.Tensor]) -> dict[str, Any]:
        """One optimizer step on the mean of some losses.

        Returns:
            The step's number, loss, learning rate, gradient norm, and mean sig(g).

        Raises:
            EdgeInfiniteError: the loss isn't finite.
        """
        rate = self._set_rates()
        loss = torch.stack(list(losses)).mean()
        loss.backward()
        shown = float(self._accelerator.reduce(loss.detach(), "mean"))
        if not math.isfinite(shown):
            raise EdgeInfiniteError(
                f"the loss is {shown} in step {self.done + 1}; give a lower --learning-rate"
            )
        if self._accelerator.num_processes > 1:
            for parameter in self.parameters:
                parameter.grad = self._accelerator.reduce(parameter.grad, "mean")
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, _LARGEST_NORM)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.done += 1
        return {
            "step": self.done,
            "loss": shown,
            "learning_rate": rate,
            "gradient_norm": float(norm),
            "opening": fmean(float(gate.g.detach().sigmoid().mean()) for gate in self._gates),
        }

    def _set_rates(self) -> float:
        """A short warm-up, then a cosine."""
        cosine = _LEAST_RATE + (1 - _LEAST_RATE) * (1 + math.cos(math.pi * self.share_done)) / 2
        factor = min(1.0, (self.share_done + 1e-3) / _WARM_UP) * cosine
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        return float(self.optimizer.param_groups[0]["lr"])
