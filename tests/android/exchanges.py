"""Texts that PyTorch and ExecuTorch begin, for the Kotlin runtime to go on with on ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from byte_checkpoints import byte_checkpoint

from edgeinfinite.artifact.manifest import GATE_FILE, SCORER_FILE, read_manifest
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import save_session
from edgeinfinite.runtime_py.session.session import Session

RECEIVERS = ("reencode", "carry-recall")
"""Fixtures of `sessions`: both policies."""

CHECKPOINT = "checkpoint"
POINTS = (5, 61, 150)
MORE, ANSWER = 37, 24


def write_exchanges(folder: Path) -> None:
    """`cases.json`: who began which text, where its session lies, and what comes next."""
    byte_checkpoint(folder / CHECKPOINT)
    cases: list[dict[str, Any]] = []
    for receiver in RECEIVERS:
        if find_spec("executorch"):
            _export(_artifact(folder, receiver), folder)
        for sender, engine in senders(folder, receiver):
            for point in POINTS:
                cases.append(_case(folder, receiver, sender, engine, point))
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def _case(folder: Path, receiver: str, sender: str, engine: Engine, point: int) -> dict[str, Any]:
    tokens = np.random.default_rng(point).integers(3, engine.vocabulary, point + MORE).tolist()
    session = Session(engine)
    session.append(tokens[:point])
    state = f"{receiver}-{sender}-{point}.session"
    save_session(session, folder / state)
    logits = session.append(tokens[point:])
    answer = []
    for _ in range(ANSWER):
        answer.append(int(logits.argmax()))
        logits = session.append(answer[-1:])
    case = {"receiver": receiver, "sender": sender, "state": state}
    return case | {"before": tokens[:point], "tokens": tokens[point:], "answer": answer}


def senders(folder: Path, receiver: str) -> Iterator[tuple[str, Engine]]:
    """The engines that begin a receiver's texts, by name."""
    artifact = _artifact(folder, receiver)
    manifest = read_manifest(artifact)
    gate = str(artifact / GATE_FILE) if manifest.gate else NO_GATE
    scorer = str(artifact / SCORER_FILE) if manifest.scorer else None
    config = EdgeInfiniteConfig(manifest.geometry, gate, scorer=scorer)
    yield "torch", TorchEngine(attach(load_backbone(str(folder / CHECKPOINT)).model, config))
    program = folder / f"{receiver}-executorch"
    if program.is_dir():
        yield "executorch", load_engine(program, threads=1)


def _artifact(folder: Path, receiver: str) -> Path:
    return folder.parent / "sessions" / receiver / "artifact"


def _export(artifact: Path, folder: Path) -> None:
    manifest = read_manifest(artifact)
    options = ExportOptions(
        model=str(folder / CHECKPOINT),
        output=folder / f"{artifact.parent.name}-executorch",
        backend="executorch",
        quantize="none",
        geometry=manifest.geometry,
        gate=str(artifact / GATE_FILE) if manifest.gate else "none",
        scorer=str(artifact / SCORER_FILE) if manifest.scorer else None,
    )
    export_artifact(options, progress=lambda what, done: None)
