"""Compares the artifact with a reference on a real text, across compressions.

The artifact reads the text with its own geometry, in the same `Session` as in normal use. For a
probed call the reference computes the same step *from the artifact's own state*, and what both
return and write is compared. So every kind of step is checked (empty cache, full cache, with
memory, one token, many), each against a tight limit: errors of earlier steps don't add up.
All compressions are probed. Prefill and decode are sampled by default, because PyTorch is slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from edgeinfinite.artifact.manifest import Manifest, cache_type_of, load_manifest
from edgeinfinite.artifact.tensors import RECURRENT, SCORES, SUMS
from edgeinfinite.export.backend import ExactParity, Progress
from edgeinfinite.export.default_text import default_text
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.compression import CompressionParity
from edgeinfinite.export.parity.sensitivity import nudged
from edgeinfinite.export.parity.state_errors import (
    cache_errors,
    copy_state,
    relative_error,
    tensor_errors,
)
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.engines.base import Reader
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import State
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

COMPRESSIONS = 3
"""Compressions during the check. The second is the first one that reads and writes M."""

_FLOAT_LIMITS = {"logits": 1e-4, "k_cache": 1e-4, "v_cache": 1e-4}
"""float32 arithmetic in another order has relative errors of about 1e-6."""

_QUANTIZED_LIMITS = {"logits": 0.1, "k_cache": 0.1, "v_cache": 0.1}
"""The reference has the same quantized weights, so the error is the rounding of activations to 8
bits. For SmolLM2-135M it is 0.04 in the logits, which costs 0.003 nats of KL divergence per token.
With exact activations the same graph is within 1e-5 (tests/export/onnx/test_passes.py)."""

_HALF_LIMITS = {"logits": 5e-3, "k_cache": 5e-3, "v_cache": 5e-3}
"""float32 weights with a float16 cache: Q, K, V and attention's output have 11 bits."""

_INT8_LIMITS = {"logits": 0.03, "k_cache": 0.03, "v_cache": 0.03}
"""float32 weights with an int8 cache: numbers that two implementations compute alike to six digits
may round to codes next to each other, and so on in every layer."""

_EMULATED_LIMITS = {"logits": 0.03, "k_cache": 0.03, "v_cache": 0.03}
"""Of an NPU that computes everything in float16, in every layer on top of the one before."""

_MEMORY_LIMIT = 1e-4
"""Compression is float32 in every artifact, and computed here from equal caches."""

_NUDGE_FACTOR = 2.0
"""If the reference rounds inputs as the artifact does, a limit is this factor times the change that
nudges cause (`sensitivity.py`)."""

_AGREEMENT_LIMIT = 0.95
_PROBE_TOKENS = 32
_PROBE_STEPS = 4


def check_parity(
    folder: Path,
    reference: Engine,
    *,
    text: str | None = None,
    same_weights: bool = True,
    every_call: bool = False,
    exact: ExactParity | None = None,
    emulate: bool = False,
    progress: Progress | None = None,
) -> list[Check]:
    """Runs an artifact beside a reference.

    Args:
        folder: the artifact.
        reference: an engine with the same geometry: `TorchEngine` over
            `Backend.quantized_reference`, or another artifact's engine.
        text: what to read; None takes an English text that is part of every Python.
        same_weights: False if the reference is quantized differently or not at all. Then only the
            memory and the scores have a limit.
        every_call: probe every call, not samples.
        exact: compares what the artifact's files say, see `Backend.exact_parity`.
        emulate: run what was compiled for an NPU in its emulator.
        progress: see `Progress`.

    Returns:
        `parity:logits`, `parity:k_cache`, `parity:v_cache`, `parity:memory`,
        `parity:memory_norm`, `parity:scores` (relative errors over the probes: the largest of
        what is computed in float32, the root mean square of what rounds activations) and
        `greedy_agreement` (share of probes in which both prefer the same token, without
        near-ties); with `exact` its own.
    """
    manifest = load_manifest(folder, check_files=False)
    probe = ProbedEngine(
        load_engine(folder, every_graph=True, emulate=emulate),
        reference,
        every_call=every_call,
        nudged=nudged(reference) if same_weights else None,
    )
    tokens = _tokens(folder, text)
    session = read_through(probe, tokens, progress or (lambda *_: None))
    limits = _EMULATED_LIMITS if emulate else _limits(manifest)
    limits = {**limits, **dict.fromkeys(RECURRENT, limits["k_cache"])}
    limits |= dict.fromkeys((*SUMS, SCORES), _MEMORY_LIMIT)
    checks = []
    for name, errors in probe.errors.items():
        computed = name in (*SUMS, SCORES)  # in float32, from equal caches
        known = same_weights or computed
        in_float = computed or (manifest.quantization.recipe == "none" and not emulate)
        error, limit = _worst(errors, probe.noise.get(name), limits[name], in_float)
        limits[name] = limit
        passed = bool(np.isfinite(error)) and (not known or error <= limit)
        checks.append(Check(f"parity:{name}", passed, error, limit if known else None))
    agreement = probe.agreement(limits["logits"])
    least = _AGREEMENT_LIMIT if same_weights else None
    checks.append(Check("greedy_agreement", agreement >= (least or 0.0), agreement, least))
    states = (probe.new_state(), session.state)
    del probe, session  # the artifact is loaded once more, and its weights needn't be there twice
    if exact is not None and isinstance(reference, TorchEngine):
        checks += exact(folder, manifest, reference, states, tokens)
    return checks


def _limits(manifest: Manifest) -> dict[str, float]:
    if manifest.quantization.recipe != "none":
        return _QUANTIZED_LIMITS
    by_cache = {"float32": _FLOAT_LIMITS, "float16": _HALF_LIMITS, INT8_CACHE: _INT8_LIMITS}
    return by_cache[cache_type_of(manifest)]


def _worst(
    errors: list[list[float]], noise: list[list[float]] | None, limit: float, exact: bool
) -> tuple[float, float]:
    """The error that is judged, and its limit.

    Args:
        errors: for each probe, by layer.
        noise: what nudges change in the reference, in the same form; None if it isn't known.
        limit: the limit that holds when there is no noise.
        exact: judge the largest error, not the root mean square over the probes.
    """
    if noise is None:
        worst = np.max(errors, axis=1)
        return float(worst.max() if exact else np.sqrt(np.mean(worst**2))), limit
    values, expected = (np.sqrt(np.mean(np.square(x), axis=0)) for x in (errors, noise))
    limits = _FLOAT_LIMITS["logits"] + _NUDGE_FACTOR * expected
    layer = int(np.argmax(values / limits))  # a NaN counts as the largest
    return float(values[layer]), float(limits[layer])


class ProbedEngine:
    """An `Engine` that has chosen calls computed by a reference too.

    Args:
        subject: the engine under test, whose results count.
        reference: computes probed calls from a copy of the subject's state.
        every_call: probe every call. Otherwise only compressions, and calls while `probing` is
            true, are probed.
        nudged: the reference with minimal changes inside, see `sensitivity.py`.

    Attributes:
        errors: relative errors by name; one list per probed call, with one number per layer (for
            logits one number).
        noise: the errors of `nudged` against the reference; empty without `nudged`.
    """

    def __init__(
        self,
        subject: Engine,
        reference: Engine,
        *,
        every_call: bool,
        nudged: Engine | None = None,
    ) -> None:
        self.name = subject.name
        self.geometry = subject.geometry
        self.vocabulary = subject.vocabulary
        self.fingerprint, self.model_digest = subject.fingerprint, subject.model_digest
        self.cache_scales = subject.cache_scales
        self.reads_memory = subject.reads_memory
        self.chunk_length = subject.chunk_length
        self.probing = every_call
        self.errors: dict[str, list[list[float]]] = defaultdict(list)
        self.noise: dict[str, list[list[float]]] = defaultdict(list)
        self._every_call = every_call
        self._subject = subject
        self._reference = reference
        self._compression = CompressionParity(subject, reference)
        self._state = reference.new_state()
        self._nudged = nudged
        self._nudged_state = nudged.new_state() if nudged else None
        self._choices: list[tuple[bool, float]] = []

    def new_state(self) -> State:
        return self._subject.new_state()

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        return self._run("prefill_segment", tokens, state)

    def reading(self, tokens: int) -> AbstractContextManager[Reader | None]:
        return nullcontext()

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        return self._run("decode_step", tokens, state)

    def _run(self, graph: str, tokens: np.ndarray, state: State) -> np.ndarray:
        run = getattr(self._subject, graph)
        if not (self.probing or self._every_call):
            return run(tokens, state)
        before = state.length.copy()
        copy_state(state, self._state)
        wanted = getattr(self._reference, graph)(tokens, self._state)
        new = [slice(used, used + tokens.shape[1]) for used in before]
        if self._nudged is not None and self._nudged_state is not None:
            copy_state(state, self._nudged_state)
            moved = getattr(self._nudged, graph)(tokens, self._nudged_state)
            self.noise["logits"].append([_logits_error(moved, wanted)])
            self._note_caches(self.noise, self._nudged_state, new)
        logits = run(tokens, state)
        self._note_logits(logits, wanted)
        self._note_caches(self.errors, state, new)
        return logits

    def compress_memory(self, state: State) -> None:
        for name, errors in self._compression.compress(state).items():
            self.errors[name].append(errors)

    def agreement(self, noise: float) -> float:
        """The share of equal greedy choices, without the choices that rounding can change.

        Args:
            noise: the expected relative error of the logits.
        """
        clear = [same for same, margin in self._choices if same or margin > 3 * noise]
        return float(np.mean(clear)) if clear else 1.0

    def _note_logits(self, logits: np.ndarray, wanted: np.ndarray) -> None:
        self.errors["logits"].append([_logits_error(logits, wanted)])
        second, first = np.partition(wanted, -2)[-2:]
        margin = float((first - second) / wanted.std())
        self._choices.append((bool(logits.argmax() == wanted.argmax()), margin))

    def _note_caches(
        self, notes: dict[str, list[list[float]]], state: State, slots: list[slice]
    ) -> None:
        """Errors in the given slots of every layer, and of what other layers keep."""
        for kind in ("k_cache", "v_cache"):
            notes[kind].append(cache_errors(kind, state, self._state, slots))
        for role in RECURRENT:
            if errors := tensor_errors(role, state, self._state):
                notes[role].append(errors)


def read_through(engine: ProbedEngine, tokens: Iterator[int], progress: Progress) -> Session:
    """Reads until there were `COMPRESSIONS` compressions; probes before the first, after each."""
    session = Session(engine)
    capacity = engine.geometry.capacity
    _probe(engine, session, tokens)
    while session.compressions < COMPRESSIONS:
        progress("comparing with the checkpoint", session.compressions / COMPRESSIONS)
        # Up to the slot before the last, one probed token for the last, and one that overflows.
        session.append(list(islice(tokens, max(1, capacity - 2 - session.cached))))
        before = session.compressions
        while session.compressions == before:
            engine.probing = True
            session.append([next(tokens)])
            engine.probing = False
        _probe(engine, session, tokens)
    return session


def _probe(engine: ProbedEngine, session: Session, tokens: Iterator[int]) -> None:
    """Probes a few tokens at once and a few one by one, while they fit before a compression."""
    engine.probing = True
    for count in (_PROBE_TOKENS, *([1] * _PROBE_STEPS)):
        if session.cached + count < engine.geometry.capacity:
            session.append(list(islice(tokens, count)))
    engine.probing = False


def _tokens(folder: Path, text: str | None) -> Iterator[int]:
    """The text's tokens, again from the start where it ends."""
    ids = load_tokenizer(folder).encode_text(text or default_text())
    return cycle(ids)


def _logits_error(logits: np.ndarray, wanted: np.ndarray) -> float:
    """The error relative to the logits' own spread, because a common offset has no effect."""
    return relative_error(logits - wanted.mean(), wanted - wanted.mean())
