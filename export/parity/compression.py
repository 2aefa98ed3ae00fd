"""Compares one compression by an engine and by its reference, from equal states.

Under policy `carry` a compression decides which pairs stay. Both engines compute the ranks in
float32. If two pairs rank alike to the sixth digit (in one of a hundred compressions of 30 heads),
either of them may stay, and all slots between the two differ. Neither choice is wrong. So if slots
differ, the reference decides again, several times, from scores changed in the sixth digit, those of
its second networks too. The smallest error of each layer counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from edgeinfinite.artifact.tensors import CACHES, SCORES, SUMS
from edgeinfinite.export.parity.state_errors import (
    cache_errors,
    copy_state,
    relative_error,
)
from edgeinfinite.runtime_py.engines import Engine
from edgeinfinite.runtime_py.session.state import State

NUDGE = 1e-5
"""How much scores are changed; over ordinary text their standard deviation is 1."""

_DECISIONS = 8
_OTHER_SLOTS = 5e-3
"""Relative error of a layer's keys. Another choice of pairs exceeds it; the rounding of moved keys
in a float16 cache is a tenth of it."""


class CompressionParity:
    """Compares compressions of `subject` with those of `reference`."""

    def __init__(self, subject: Engine, reference: Engine) -> None:
        self._subject = subject
        self._reference = reference
        self._before = reference.new_state()
        self._wanted = reference.new_state()
        self._random = np.random.default_rng(0)

    def compress(self, state: State) -> dict[str, list[float]]:
        """Lets the subject compress `state`.

        Returns:
            Relative errors by name, as in `check_parity`; caches and scores have one number per
            layer.
        """
        copy_state(state, self._before)
        self._subject.compress_memory(state)
        errors = self._errors(state)
        for _ in range(_DECISIONS if state.keeps_scores else 0):
            if not max(errors["k_cache"].values()) > _OTHER_SLOTS:
                break
            other = self._errors(state, NUDGE)
            for layer, error in other["k_cache"].items():
                if error < errors["k_cache"][layer]:
                    for name, by_layer in other.items():
                        if layer in by_layer:
                            errors[name][layer] = by_layer[layer]
        return {name: list(by_layer.values()) for name, by_layer in errors.items()}

    def _errors(self, state: State, nudge: float = 0.0) -> dict[str, dict[int, float]]:
        """Lets the reference compress; errors by name and layer (the memory is one tensor)."""
        copy_state(self._before, self._wanted)
        scores = {spec.layer: spec.name for spec in self._wanted.specs if spec.role == SCORES}
        for name in scores.values() if nudge else ():
            array = self._wanted.arrays[name]
            array += nudge * self._random.standard_normal(array.shape, dtype=np.float32)
        with _nudged(self._reference, nudge, self._random):
            self._reference.compress_memory(self._wanted)
        wanted, geometry = self._wanted.arrays, self._subject.geometry
        errors: dict[str, dict[int, float]] = {
            name: {0: relative_error(state.arrays[name], wanted[name])}
            for name in SUMS
            if name in state.arrays
        }
        if scores:
            # Scores of the used slots are sorted: pairs that rank alike may be in any order.
            fixed = geometry.sink_length + geometry.window_length
            used, both = self._wanted.length - fixed, (state.arrays, wanted)
            errors[SCORES] = {
                layer: relative_error(
                    *(np.sort(arrays[name][..., : used[layer]]) for arrays in both)
                )
                for layer, name in scores.items()
                if layer is not None
            }
        if geometry.policy != "reencode":  # caches are changed too
            capacities = geometry.capacities(len(state.length))
            left = [slice(0, capacity - geometry.segment_length) for capacity in capacities]
            for role in CACHES:
                errors[role] = dict(enumerate(cache_errors(role, state, self._wanted, left)))
        return errors


@contextmanager
def _nudged(engine: Engine, nudge: float, random: np.random.Generator) -> Iterator[None]:
    """Changes what the second networks of a checkpoint's engine say by so much, relatively.

    An artifact's engine computes them in its graph and stays as it is.
    """
    scorers = getattr(engine, "scorers", ()) if nudge else ()
    networks = [found for s in scorers if (found := getattr(s, "repeats", None)) is not None]
    before = [network.w2.data for network in networks]
    for network, weights in zip(networks, before, strict=True):
        noise = random.standard_normal(weights.shape, dtype=np.float32)
        network.w2.data = weights * (1 + nudge * torch.from_numpy(noise))
    try:
        yield
    finally:
        for network, weights in zip(networks, before, strict=True):
            network.w2.data = weights
