"""How far rounding of activations moves what a fixture's artifact computes.

A kernel that rounds activations to 8 bits may break ties, group sums and choose scales otherwise
than another CPU's, and some kernels don't round at all. Each right kernel stays about as far from
exact activations as any other. So the same text is read a second time by the same graphs with
`accuracy_level` 1 (activations in float32); the distance E between the two is the model's measured
sensitivity. Two kernels whose roundings are independent are then about sqrt(2) E apart; one that
doesn't round is E apart from one that does.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
from manifest_edit import edit_manifest

from edgeinfinite.artifact.manifest import file_entry
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.session.session import Cancelled, Session

KERNELS = 2.0**0.5
"""Both kernels are as far from exact activations; independent errors add as squares."""
FLOAT_ACTIVATIONS = 1


def rounding_tolerance(folder: Path) -> float:
    """What a fixture with rounded activations allows, relative to `max(1, largest magnitude)`."""
    with tempfile.TemporaryDirectory() as scratch:
        exact = Path(scratch) / "exact"
        shutil.copytree(folder / "artifact", exact)
        compute_exactly(exact)
        return KERNELS * largest_difference(folder, exact)


def compute_exactly(artifact: Path) -> None:
    """Lets the artifact's graphs keep activations in float32; its weights stay as they are.

    Raises:
        ValueError: no graph rounds activations.
    """
    changed = 0
    for file in sorted(artifact.glob("**/*.onnx")):
        model = onnx.load(file, load_external_data=False)
        for node in _nodes(model):
            for attribute in node.attribute:
                if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                    changed += attribute.i != FLOAT_ACTIVATIONS
                    attribute.i = FLOAT_ACTIVATIONS
        onnx.save(model, file)
        renew_checksum(artifact, file)
    if not changed:
        raise ValueError(f"no graph of {artifact.name} rounds activations")


def renew_checksum(artifact: Path, file: Path) -> None:
    """Puts a changed file's size and SHA-256 into the manifest."""
    name, entry = file.relative_to(artifact).as_posix(), asdict(file_entry(file))
    edit_manifest(artifact, lambda manifest: manifest["files"].update({name: entry}))


def largest_difference(folder: Path, artifact: Path) -> float:
    """Reads a fixture's text with another artifact: the largest relative error of logits and
    state, as the tests on the Kotlin side measure it."""
    recorded = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    engine, own = load_engine(artifact, threads=1), folder / "artifact"
    first = engine if artifact == own else load_engine(own, threads=1)
    session = Session(engine, chunk_length=recorded["chunk_length"])
    rows = iter(np.fromfile(folder / "logits.f32", "<f4").reshape(-1, first.vocabulary))
    worst = 0.0
    for step in recorded["steps"]:
        if step["kind"] == "cancelled":
            _stopped(session, step["tokens"])
            continue
        alone = step["kind"] in ("decode", "greedy")
        parts = [[token] for token in step["tokens"]] if alone else [step["tokens"]]
        for tokens in parts:
            logits = session.append(tokens)
            worst = max(worst, relative(next(rows), logits))
        wanted, _ = load_session(first, folder / step["state"])
        worst = max(worst, *(relative(*pair) for pair in _used(wanted, session)))
    return worst


def _stopped(session: Session, tokens: list[int]) -> None:
    """Stops where the recording stopped; "resumed" reads the rest."""
    before = session.tokens_read
    with contextlib.suppress(Cancelled):
        session.append(tokens, cancelled=lambda: session.tokens_read >= before + 30)


def relative(wanted: np.ndarray, found: np.ndarray) -> float:
    """The largest difference over `max(1, largest magnitude)`."""
    if not wanted.size:
        return 0.0
    scale = max(1.0, float(np.abs(wanted).max()))
    return float(np.abs(wanted - found).max()) / scale


def _used(wanted: Session, found: Session) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of tensors, of caches the slots in use, whichever axis they lie on."""
    for spec in wanted.state.specs:
        if np.issubdtype(np.dtype(spec.dtype), np.floating):
            yield wanted.state.in_use(spec), found.state.in_use(spec)


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from model.graph.node
    for function in model.functions:
        yield from function.node
