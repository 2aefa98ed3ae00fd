"""The compared methods, and how each reads a text.

Every method is a session of the reference engine, so they differ in nothing but what stays in the
cache: `full` has room for all of the text, which is full attention exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.baselines import BASELINES, Lola, baseline_scorer
from edgeinfinite.evaluation.cache_scales import give_scales
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.placement import PlacedEngine, new_tensors_on
from edgeinfinite.evaluation.reader import Footprint, Prediction, measured
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.configuration import (
    INT8_CACHE,
    NO_GATE,
    UNTRAINED_GATE,
    UNTRAINED_SCORER,
    EdgeInfiniteConfig,
)
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import State

METHODS = ("full", "streaming", "edgeinfinite", *BASELINES)
GATE_CONTROLS = (
    "memory-off",
    "untrained-gate",
    "trained-gate",
    "swapped-memory",
    "zero-memory-gate",
)

_SEGMENT = 128

ABLATIONS = ("without-sinks", "without-window", "without-both")
"""The paper's Table 2: S = 0, and W = 1 for the token that predicts the next one."""


def check_methods(methods: Sequence[str], setting: Setting, more: Sequence[str] = ()) -> None:
    """Refuses methods that can't be measured, before any long work.

    Args:
        methods: as the user named them.
        setting: what they are built from.
        more: choices beside `METHODS`.

    Raises:
        EdgeInfiniteError: a method is unknown, or lacks what it needs.
    """
    known = (*METHODS, *more)
    for method in methods:
        if method not in known:
            raise EdgeInfiniteError(f"unknown method {method!r}; choose from {', '.join(known)}")
        if method in BASELINES and not setting.geometry.most_slots:
            raise EdgeInfiniteError(f"{method} fills recall slots; give --recall-slots")
        if method == "lola" and setting.geometry.has_windows:
            raise EdgeInfiniteError("lola can't measure models with sliding windows; leave it out")
        if method == "lola" and setting.geometry.varies:
            raise EdgeInfiniteError(
                "lola needs the same recall slots in every layer; give --recall-slots 512"
            )
        needs_gate = method in ("trained-gate", "swapped-memory")
        if needs_gate and setting.gate in (NO_GATE, UNTRAINED_GATE):
            raise EdgeInfiniteError(f"{method} needs a trained gate; give --gate FILE")
        if method == "zero-memory-gate" and setting.zero_gate is None:
            raise EdgeInfiniteError(
                "zero-memory-gate needs a gate trained on a zero memory; give --zero-gate FILE"
            )
    if not methods:
        raise EdgeInfiniteError(f"no method given; choose from {', '.join(known)}")


def configuration(method: str, setting: Setting, tokens: int) -> EdgeInfiniteConfig:
    """The configuration of `attach` for a method.

    Args:
        method: see `METHODS`, `GATE_CONTROLS` and `ABLATIONS`.
        setting: what it is built from.
        tokens: of the text; `full` needs room for all of them.
    """
    geometry = setting.geometry
    if method == "full":
        # A cache as long as the text evicts nothing. Layers with sliding windows drop what no token
        # sees any more, once in `segment` tokens.
        segment = max(1, min(_SEGMENT, tokens - 1))
        window = max(1, tokens - segment)
        whole = Geometry(segment, sink_length=0, window_length=window, policy="carry")
        return EdgeInfiniteConfig(whole, NO_GATE, cache_type=setting.cache_type)
    if method == "streaming":
        window = geometry.window_length + geometry.average_slots
        streaming = replace(geometry, policy="carry", recall_slots=0, window_length=window)
        return EdgeInfiniteConfig(streaming, NO_GATE, cache_type=setting.cache_type)
    if method in ABLATIONS:
        without = method.removeprefix("without-")
        if without in ("sinks", "both"):
            geometry = replace(geometry, sink_length=0)
        if without in ("window", "both"):
            geometry = replace(geometry, window_length=1)
    gate = setting.gate
    if method == "memory-off":
        gate = NO_GATE
    elif method == "untrained-gate":
        gate = UNTRAINED_GATE
    elif method == "zero-memory-gate":
        assert setting.zero_gate is not None
        gate = setting.zero_gate
    scorer = UNTRAINED_SCORER if method in BASELINES else setting.scorer
    return EdgeInfiniteConfig(geometry, gate, scorer=scorer, cache_type=setting.cache_type)


def reads_whole(method: str, tokens: int, model: PreTrainedModel) -> bool:
    """Whether a method can read this many tokens: full attention is limited to trained
    positions.
    """
    return method != "full" or tokens <= architecture_of(model).positions


class Reader:
    """Reads texts with a method and measures its predictions.

    Args:
        model: any dtype, on the CPU or a GPU, where its state lies too; this class attaches it.
        method: which one.
        setting: what it is built from.
        tokens: length of the longest text.
        other: for `swapped-memory`, the tokens of another text, whose memory is read.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        method: str,
        setting: Setting,
        tokens: int,
        other: Sequence[int] = (),
    ) -> None:
        config = configuration(method, setting, tokens)
        attach(model, config)
        if setting.cache_type == INT8_CACHE:
            give_scales(model, setting.scale_tokens)
        self._grows = method == "full"
        if method in BASELINES:
            heads = architecture_of(model).every_heads
            with new_tensors_on(model.device):
                for layer, size in zip(attention_layers(model), heads, strict=True):
                    layer.retention_scorer = baseline_scorer(method, *size)
        memories = _memories(model, other) if method == "swapped-memory" else None
        if method == "zero-memory-gate":
            memories = []
        self._engine = _MeasuringEngine(model, memories)
        self.restart()

    def restart(self) -> None:
        """Begins a new text."""
        self._session = Session(self._engine)
        self._engine.begin()

    @property
    def session(self) -> Session:
        """What reads."""
        return self._session

    @property
    def state_bytes(self) -> int:
        """Bytes of the state."""
        return self._session.state.nbytes

    @property
    def footprint(self) -> Footprint:
        """See `Footprint`; a fixed state is constant, full attention's cache grows."""
        held = self.state_bytes
        if not self._grows:
            return Footprint(held, held, held)
        read = self._session.tokens_read
        now = round(held * read / self._engine.geometry.capacity)
        return Footprint(now, now, round(now * (read + 1) / (2 * max(1, read))))

    @property
    def logits(self) -> np.ndarray:
        """`[V]` float32 after the last token read."""
        assert self._engine.last is not None, "nothing has been read"
        return self._engine.last[-1].cpu().numpy()

    def read(
        self, tokens: Sequence[int], progress: Callable[[int], None] | None = None
    ) -> Prediction:
        """Reads on and measures; the first token of a text has a loss of nan."""
        nats, best = [np.empty(0)], [np.empty(0, bool)]

        def collect(new: int) -> None:  # tokens that the window reads again don't count
            nats.append(self._engine.nats[-new:])
            best.append(self._engine.best[-new:])
            if progress:
                progress(new)

        self._session.append(tokens, progress=collect)
        return Prediction(np.concatenate(nats), np.concatenate(best))

    def skip(self, tokens: Sequence[int], progress: Callable[[int], None] | None = None) -> None:
        """Reads on without measuring, which is faster."""
        self._engine.measures = False
        self._session.append(tokens, progress=progress)
        self._engine.measures = True

    def end_prompt(self) -> None:
        """Nothing waits for the end of a prompt."""

    def save(self) -> Callable[[], None]:
        """Remembers the state; calling the result brings it back, any number of times."""
        engine, restore_session = self._engine, saved(self._session)
        last, sums = engine.last, engine.lola_sums

        def restore() -> None:
            restore_session()
            engine.last, engine.lola_sums = last, sums

        return restore


def saved(session: Session) -> Callable[[], None]:
    """Remembers a session's state; calling the result brings it back, any number of times."""
    arrays = deepcopy(session.state.arrays)
    counters = session.tokens_read, session.compressions, list(session.residual)

    def restore() -> None:
        for name, array in arrays.items():
            session.state.arrays[name][...] = array
        session.tokens_read, session.compressions = counters[:2]
        session.residual = list(counters[2])

    return restore


class _MeasuringEngine(PlacedEngine):
    """Also measures the prediction of every token of a chunk.

    Args:
        model: attached.
        memories: M and z to read after each compression in place of the text's own memory; an empty
            list means a memory of zeros, None the text's own.
    """

    def __init__(self, model: PreTrainedModel, memories: list[tuple[Any, Any]] | None) -> None:
        super().__init__(model)
        self._memories = memories
        self.measures = True
        self.begin()

    def begin(self) -> None:
        self.last: torch.Tensor | None = None
        self.nats, self.best = np.empty(0), np.empty(0, bool)
        self._compressions = 0
        self.lola_sums = [(0 * m, 0 * z) for m, z in self.lola_sums]

    @property
    def lola_sums(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """M and z of every layer's `Lola`, part of the text's state; empty for other scorers."""
        return [(s.memory, s.norm) for s in self.scorers if isinstance(s, Lola)]

    @lola_sums.setter
    def lola_sums(self, sums: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        for scorer, (memory, norm) in zip(self.scorers, sums, strict=bool(sums)):
            scorer.memory, scorer.norm = memory, norm

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        device = self.model.device
        ids = torch.from_numpy(tokens).to(device)
        kept = 0 if self.measures else 1
        with torch.inference_mode(), new_tensors_on(device):
            logits = run_tokens(self.model, ids, self._shared(state), logits_to_keep=kept)
            logits = logits[0].float()
            if not self.measures:
                self.last = logits
                return logits[0].cpu().numpy()
            prediction = measured(logits, ids[0], self.last)
            self.nats, self.best = prediction.nats, prediction.best
            self.last = logits[-1:].clone()
        return logits[-1].cpu().numpy()

    def _fold_for_lola(self, state: State) -> None:
        """Folds the residual's N oldest pairs; the first time also the pairs in the recall
        slots.
        """
        geometry, shared = self.geometry, self._shared(state)
        end = int(shared.length[0]) - geometry.window_length
        for layer, (scorer, table) in enumerate(zip(self.scorers, self._tables, strict=True)):
            start = end - geometry.segment_length if scorer.norm.any() else geometry.sink_length
            keys, values = (c[layer][0, :, start:end] for c in (shared.k_cache, shared.v_cache))
            scorer.fold(table.shift_back(keys, torch.arange(start, end)), values)

    def compress_memory(self, state: State) -> None:
        if self.lola_sums:
            with new_tensors_on(self.model.device):
                self._fold_for_lola(state)
        super().compress_memory(state)
        if self._memories is None:
            return
        at = min(self._compressions, len(self._memories) - 1)
        memory, norm = self._memories[at] if self._memories else (0.0, 0.0)
        state.arrays["memory"][...], state.arrays["memory_norm"][...] = memory, norm
        self._compressions += 1


class _RecordingEngine(PlacedEngine):
    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self.memories: list[tuple[Any, Any]] = []

    def compress_memory(self, state: State) -> None:
        super().compress_memory(state)
        arrays = state.arrays
        self.memories.append((deepcopy(arrays["memory"]), deepcopy(arrays["memory_norm"])))


def _memories(model: PreTrainedModel, tokens: Sequence[int]) -> list[tuple[Any, Any]]:
    """M and z after every compression of a text: arrays, or tensors on the model's GPU."""
    engine = _RecordingEngine(model)
    Session(engine).append(tokens)
    if not engine.memories:
        raise EdgeInfiniteError(
            f"{len(tokens):,} tokens fit the cache, so there is no memory to swap; give more"
        )
    return engine.memories
