"""Steps of the optimizer on the gates: rates, clipping, and the row that each step leaves."""

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
    """AdamW on the gates of a model; g and c have a rate of their own.

    Args:
        gates: of all layers, on the device that they stay on.
        rates: of all but g and c, and of these, at their highest; they fall along a cosine.
        planned: steps in all.
        accelerator: processes that average their gradients; None for this one alone.

    Attributes:
        parameters: all that is trained.
        optimizer: what steps.
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
        """Of the steps planned."""
        return self.done / self._planned

    def step(self, losses: Sequence[torch.Tensor]) -> dict[str, Any]:
        """One step down the mean of some losses.

        Returns:
            The step's number, its loss, rate, norm of the gradient, and mean sig(g).

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
