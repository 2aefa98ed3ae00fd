"""Measures how far a model's results change when its inner values change in the seventh digit.

Layers that round their inputs to 8 bits at run time drive any two implementations apart. One of
them rounds a value near the border of two steps down, the other rounds it up. A difference of δ
changes about δ / s of all values by a whole step s, and leaves a difference of about sqrt(δ s). It
grows from layer to layer until it is as large as the rounding itself, however small it was. So no
fixed limit tells a wrong program from a right one. Instead the reference runs a second time with a
nudge in front of every rounding. This shows the error to expect in each layer; `calls.py` allows
twice that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from edgeinfinite.runtime_py.engines import Engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

NUDGE = 1e-5
"""Relative change, as large as float32's error over a few dozen operators. It is large enough that
even in a single token some value is rounded to the other side."""


class RoundsInput:
    """Marks a module that rounds its input while it runs."""


def nudged(reference: Engine) -> Engine | None:
    """An engine that computes as `reference` does, with nudges.

    Returns:
        None if no module of the reference is a `RoundsInput`, because nudges would show nothing.
    """
    if not isinstance(reference, TorchEngine):
        return None
    rounds = any(isinstance(module, RoundsInput) for module in reference.model.modules())
    return NudgedEngine(reference.model) if rounds else None


class NudgedEngine(TorchEngine):
    """See `nudged`; the nudges are the same in every run of the program."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._random = torch.Generator().manual_seed(0)

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        rounding = [m for m in self.model.modules() if isinstance(m, RoundsInput)]
        hooks = [module.register_forward_pre_hook(self._nudge) for module in rounding]
        try:
            return super().prefill_segment(tokens, state)
        finally:
            for hook in hooks:
                hook.remove()

    def _nudge(self, _module: Any, inputs: tuple[torch.Tensor]) -> torch.Tensor:
        noise = torch.randn(inputs[0].shape, generator=self._random)
        return inputs[0] * (1.0 + NUDGE * noise)
