"""Tiny exported artifacts, and the Python session's results with each."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from byte_checkpoints import byte_checkpoint
from own_cpus import keep_to_next_share
from rounding import rounding_tolerance
from transformers import LlamaForCausalLM

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions, QuantizationOptions
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.reading import begin_reading, continue_reading
from edgeinfinite.runtime_py.session.saved_session import save_session
from edgeinfinite.runtime_py.session.session import Cancelled, Session

ANSWER_TOKENS = 30

FLOAT_TOLERANCE = 1e-5
"""Of float32 arithmetic in another order."""

DELTA_TOLERANCE = 1e-4
"""Of the same where a gated delta rule's result is normed: where that is small, the norm magnifies
its rounding. ONNX Runtime 1.29 is off from 1.31 by 4e-5 at most in nine texts, in single tokens."""

HALF_TOLERANCE = 4e-3
"""Keys and values rounded to 11 bits: one on the edge of two may fall the other way."""

BYTE_TOLERANCE = 0.04
"""Of 127 codes: numbers halfway between two may fall to either, and so on in every layer."""

NPU_TOLERANCE = 0.02
"""Graphs that compute in float16 throughout, on a CPU, by kernels that sum in other orders."""


OPEN_MESSAGE = "carry-recall"
"""The fixture with a document whose question is still to come."""

DOCUMENT = "The keeper lit the lamp at dusk and counted the ships. " * 9
QUESTION = "What did the keeper count?"


@dataclass(frozen=True)
class Fixture:
    """An artifact and how it is read."""

    name: str
    geometry: Geometry
    quantize: str = "none"
    chunk_length: int | None = None
    seed: int = 5
    options: dict[str, Any] = field(default_factory=dict)
    model: str = "plain"
    """`sliding`: its second layer has a sliding window; of three layers two don't attend, but
    convolve (`states`) or have a gated delta rule (`delta`); each has an SSM beside it (`ssm`); the
    last two of four layers read what the first two cached, with other heads each (`shared`); with
    learned sinks and experts (`experts`)."""
    most_loss: float | None = None
    """Nats a token: weights get formats of 4 to 8 bits, chosen to lose no more than this."""

    @property
    def is_for_npu(self) -> bool:
        """Whether its graphs have fixed shapes and are compiled for a chip."""
        return "soc" in self.options


_UNTRAINED = {"scorer": "untrained"}
_HALVES = {"cache_type": "float16"}
_BYTES = {"cache_type": "int8"}
_NPU = {"target": "qnn-htp", "soc": "sm8650"}
_ALL = (
    Fixture("reencode", Geometry(24, 4, 8)),
    Fixture("reencode-int4", Geometry(24, 4, 8), quantize="int4", chunk_length=7),
    Fixture("no-gate", Geometry(16, 2, 5), chunk_length=5, options={"gate": "none"}),
    Fixture("carry", Geometry(24, 4, 8, policy="carry")),
    Fixture(
        "carry-recall", Geometry(16, 4, 8, policy="carry", recall_slots=32), options=_UNTRAINED
    ),
    Fixture(
        "carry-by-layer",
        Geometry(16, 4, 8, policy="carry", recall_slots=(0, 48)),
        options=_UNTRAINED,
    ),
    Fixture("reencode-int8", Geometry(24, 4, 8), quantize="int8"),
    Fixture("reencode-mix", Geometry(24, 4, 8), quantize="int4", most_loss=0.02),
    Fixture("reencode-float16", Geometry(24, 4, 8), options=_HALVES),
    Fixture(
        "carry-recall-float16",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        seed=15,  # its pairs' ranks differ by 1e-3 at least; by less, halves' rounding decides
        options=_UNTRAINED | _HALVES,
    ),
    Fixture("reencode-bytes", Geometry(24, 4, 8), options=_BYTES),
    Fixture(
        "carry-recall-bytes",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        seed=15,
        options=_UNTRAINED | _BYTES,
    ),
    Fixture(
        "carry-sliding",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        options=_UNTRAINED | {"gate": "none"},
        model="sliding",
    ),
    Fixture(
        "carry-states",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        options=_UNTRAINED | {"gate": "none"},
        model="states",
    ),
    Fixture(
        "carry-delta",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        options=_UNTRAINED | {"gate": "none"},
        model="delta",
    ),
    Fixture(
        "carry-ssm",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        options=_UNTRAINED | {"gate": "none"},
        model="ssm",
    ),
    Fixture(
        "carry-shared",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        options=_UNTRAINED | {"gate": "none"},
        model="shared",
    ),
    Fixture(
        "carry-shared-bytes",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        options=_UNTRAINED | {"gate": "none"} | _BYTES,
        model="shared",
    ),
    Fixture(
        "carry-experts",
        Geometry(16, 4, 8, policy="carry", recall_slots=32),
        quantize="int4",
        options=_UNTRAINED | {"gate": "none"},
        model="experts",
    ),
    Fixture("npu-reencode", Geometry(24, 4, 8), options=_NPU),
    Fixture(
        "npu-carry",
        Geometry(16, 4, 8, policy="carry", recall_slots=(0, 48)),
        options=_UNTRAINED | _NPU,
    ),
)


def fixtures() -> tuple[Fixture, ...]:
    """All fixtures; those for an NPU where its compiler can be installed (Linux, x86-64)."""
    compiles = importlib.util.find_spec("onnxruntime_qnn") is not None
    return tuple(one for one in _ALL if compiles or not one.is_for_npu)


def write_sessions(folder: Path) -> None:
    """`NAME/artifact`, `NAME/steps.json`, `NAME/logits.f32`, `NAME/state_I.safetensors`."""
    with tempfile.TemporaryDirectory() as scratch:
        kinds = ("plain", "sliding", "states", "delta", "ssm", "shared", "experts")
        checkpoints = {kind: byte_checkpoint(Path(scratch) / kind, kind) for kind in kinds}
        workers, fresh = min(4, os.cpu_count() or 1), multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            workers, fresh, keep_to_next_share, (fresh.Value("i"), workers)
        ) as pool:
            written = []
            for fixture in fixtures():
                where = folder / fixture.name, Path(scratch)
                written.append(pool.submit(_write, fixture, checkpoints[fixture.model], *where))
            for one in written:
                one.result()


def _write(fixture: Fixture, checkpoint: Path, folder: Path, scratch: Path) -> None:
    folder.mkdir()
    gate = scratch / f"{fixture.name}.safetensors"
    options: dict[str, Any] = {"gate": str(gate)} | fixture.options
    if options["gate"] != "none":
        _open_gate(checkpoint, fixture.geometry, gate)
    if fixture.most_loss is not None:
        text = scratch / "calibration.txt"
        text.write_text(DOCUMENT * 20, encoding="utf-8")
        options["quantization"] = QuantizationOptions(
            max_loss=fixture.most_loss, calibrate=str(text)
        )
    export_artifact(
        ExportOptions(
            model=str(checkpoint),
            output=folder / "artifact",
            quantize=fixture.quantize,
            geometry=fixture.geometry,
            **options,
        ),
        progress=lambda what, done: None,
    )
    _record(fixture, folder)
    if fixture.name == OPEN_MESSAGE:
        _write_open_message(folder)


def _write_open_message(folder: Path) -> None:
    """`open.session`: a document whose question is still to come; `open.json`: that question."""
    conversation = Conversation.open(folder / "artifact", threads=1)
    text = DOCUMENT.strip()
    name = {"name": "lighthouse.txt", "title": "The Lighthouse", "sha256": "0" * 64}
    begin_reading(conversation, text, raw=False, **name)
    continue_reading(conversation, folder / "open.session")
    asked = {"document": text, "question": QUESTION, "turn": conversation.turn(QUESTION)}
    (folder / "open.json").write_text(json.dumps(asked), encoding="utf-8")


def _record(fixture: Fixture, folder: Path) -> None:
    """Prompts, appended turns, teacher-forced decode, a greedy answer, a stopped reading."""
    engine = load_engine(folder / "artifact", threads=1)
    session = Session(engine, chunk_length=fixture.chunk_length)
    random = np.random.default_rng(fixture.seed)
    steps: list[dict[str, Any]] = []
    logits: list[np.ndarray] = []

    def record(kind: str, tokens: list[int]) -> None:
        name = f"state_{len(steps)}.safetensors"
        save_session(session, folder / name, extra={"step": str(len(steps))})
        steps.append(
            {
                "kind": kind,
                "tokens": tokens,
                "state": name,
                "tokens_read": session.tokens_read,
                "compressions": session.compressions,
                "logits_until": len(logits),
            }
        )

    def drawn(count: int) -> list[int]:
        return random.integers(3, engine.vocabulary, count).tolist()

    for count in (10, 60, 1, 17, 120):
        tokens = drawn(count)
        logits.append(session.append(tokens))
        record("append", tokens)
    forced = drawn(40)
    logits.extend(session.append([token]) for token in forced)
    record("decode", forced)
    answer = []
    for _ in range(ANSWER_TOKENS):
        answer.append(int(logits[-1].argmax()))
        logits.append(session.append(answer[-1:]))
    record("greedy", answer)
    rest = drawn(90)
    read_before = session.tokens_read
    try:
        session.append(rest, cancelled=lambda: session.tokens_read >= read_before + 30)
    except Cancelled:
        record("cancelled", rest)
    assert session.unread, "the reading was to be stopped"
    logits.append(session.append([]))
    record("resumed", [])
    np.stack(logits).astype("<f4").tofile(folder / "logits.f32")
    recorded = {"chunk_length": fixture.chunk_length, "steps": steps}
    write_steps(folder, recorded)
    write_steps(folder, recorded | {"tolerance": _tolerance(fixture, folder)})


def _tolerance(fixture: Fixture, folder: Path) -> float:
    """How far another CPU or runtime may be, relative to `max(1, largest magnitude)`."""
    if fixture.quantize != "none":
        return rounding_tolerance(folder)
    if fixture.is_for_npu:
        return NPU_TOLERANCE
    if fixture.model == "delta":
        return DELTA_TOLERANCE
    by_cache = {"float16": HALF_TOLERANCE, "int8": BYTE_TOLERANCE}
    return by_cache.get(fixture.options.get("cache_type", ""), FLOAT_TOLERANCE)


def write_steps(folder: Path, recorded: dict[str, Any]) -> None:
    (folder / "steps.json").write_text(json.dumps(recorded), encoding="utf-8")


def _open_gate(checkpoint: Path, geometry: Geometry, file: Path) -> None:
    """A gate of large weights, so that an error in the memory shows."""
    model = LlamaForCausalLM.from_pretrained(checkpoint)
    scorer = "untrained" if geometry.recall_slots else None
    torch.manual_seed(1)  # the same gate in whichever process
    attach(model, EdgeInfiniteConfig(geometry, gate_rank=8, scorer=scorer))
    layers = attention_layers(model)
    for layer in layers:
        torch.nn.init.normal_(layer.memory_gate.g)
        torch.nn.init.normal_(layer.memory_gate.w1.weight)
        torch.nn.init.normal_(layer.memory_gate.w2.weight)
    save_gate(file, layers, {})
