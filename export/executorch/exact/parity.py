"""Compares what a written program says with the checkpoint, where nothing is rounded.

Layers that round their inputs to 8 bits drive any two implementations apart
(`parity.sensitivity`), so a small fault of a late layer can't be told from rounding in what the
program computes. Here its file is read back (`ExactProgram`), computed in float32, and compared
with the reference over the same weights. An int8 cache holds its codes in float32 then, and they
aren't rounded either. Sound programs are within about 1e-6.

This says nothing about XNNPACK's kernels, which the other checks run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.artifact.tensors import DECODE, PREFILL, RECURRENT
from edgeinfinite.export.executorch.exact.program import ExactProgram
from edgeinfinite.export.executorch.exact.xnnpack import UnknownPart
from edgeinfinite.export.executorch.layers import unrounded_inputs
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.state_errors import (
    cache_errors,
    copy_state,
    readable,
    relative_error,
    tensor_errors,
)
from edgeinfinite.runtime_py.engines import Engine
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

_LOG = logging.getLogger(__name__)

LIMIT = 1e-4
"""Relative, of logits and of each layer's keys and values. SmolLM2-135M's were within 2e-6."""

TOKENS = 16
"""Of a prefill call; one more is decoded."""


class ExactEngine(ExecuTorchEngine):
    """The engine, with both forward methods computed from the file."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        super().__init__(folder, manifest)
        self.program = ExactProgram(folder / manifest.graphs[DECODE].file)
        self.methods = {name: self.program.method(name) for name in (DECODE, PREFILL)}
        for name, method in self.methods.items():
            self._methods[name].compute = method.call


def exact_parity(
    folder: Path,
    manifest: Manifest,
    reference: TorchEngine,
    states: Sequence[State],
    tokens: Iterator[int],
) -> list[Check]:
    """See `Backend.exact_parity`.

    Returns:
        `exact:logits`, `exact:k_cache`, `exact:v_cache` and the kinds of state of layers that
        don't attend, the largest error of each. Nothing where the program has operations that
        aren't known here, which is logged.
    """
    try:
        return compare_exactly(ExactEngine(folder, manifest), reference, states, tokens)
    except UnknownPart as error:
        _LOG.warning("the program isn't compared in exact arithmetic: it has %s", error)
        return []


def compare_exactly(
    program: ExactEngine, reference: TorchEngine, states: Sequence[State], tokens: Iterator[int]
) -> list[Check]:
    """Compares a prefill and a decode call from each of the states, which stay as they are.

    Args:
        program: as its file says.
        reference: over the program's weights.
        states: of either.
        tokens: what the calls read.
    """
    roles = ("logits", "k_cache", "v_cache", *RECURRENT)
    errors: dict[str, list[float]] = {role: [] for role in roles}
    with torch.inference_mode(), unrounded_inputs(reference.model):
        for state in states:
            begun, room = readable(state, reference.geometry)
            chosen = np.array([list(islice(tokens, min(TOKENS + 1, room)))], dtype=np.int64)
            if chosen.size:
                _compare(program, reference, begun, chosen, errors)
    return [
        Check(f"exact:{name}", bool(np.max(values) <= LIMIT), float(np.max(values)), LIMIT)
        for name, values in errors.items()
        if values
    ]


def _unrounded_state(engine: Engine) -> State:
    """An empty state whose caches are float32."""
    specs = engine.new_state().specs
    return State([replace(spec, dtype="float32") if spec.is_cache else spec for spec in specs])


def _compare(
    program: Engine,
    reference: Engine,
    state: State,
    tokens: np.ndarray,
    errors: dict[str, list[float]],
) -> None:
    """Reads all tokens `[1, T]` but the last, then decodes that one, from a state."""
    logits, states = [], []
    first, last = tokens[:, :-1], tokens[:, -1:]
    for engine in (program, reference):
        copied = _unrounded_state(engine)
        copy_state(state, copied)
        calls = []
        if first.size:
            calls.append(engine.prefill_segment(first, copied))
            copied.length[...] += first.shape[1]
        calls.append(engine.decode_step(last, copied))
        logits.append(np.stack(calls))
        states.append(copied)
    errors["logits"] += [relative_error(*rows) for rows in zip(*logits, strict=True)]
    slots = [slice(int(old), int(old) + tokens.shape[1]) for old in state.length]
    for role in ("k_cache", "v_cache"):
        errors[role] += cache_errors(role, states[0], states[1], slots)
    for role in RECURRENT:
        errors[role] += tensor_errors(role, states[0], states[1])
