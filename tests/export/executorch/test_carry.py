"""Policy `carry` in a program: the same slots as in PyTorch, at every token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from tiny_artifact import tiny_artifact

from edgeinfinite.export.gates import GATE_FILE, SCORER_FILE
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.loading import load_backbone
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.manifest import load_manifest
from edgeinfinite.runtime_py.session import Session
from tiny import assert_close

CARRY = (
    *("--backend", "executorch", "--policy", "carry"),
    *("--segment-length", "8", "--window-length", "12", "--sink-length", "4"),
)
VARIANTS = {
    "window": CARRY,
    "slots and gate": (
        *(*CARRY, "--recall-slots", "16", "--scorer", "untrained"),
        *("--gate", "untrained"),
    ),
    "slots by layer": (
        *(*CARRY, "--recall-slots", "8,88", "--scorer", "untrained"),
        *("--gate", "untrained"),
    ),
    "slots in one layer": (*CARRY, "--recall-slots", "16,0", "--scorer", "untrained"),
}


@pytest.fixture(scope="module", params=VARIANTS)
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("carry") / "artifact", *VARIANTS[request.param])


def reference_of(artifact: Path) -> TorchEngine:
    backbone = load_backbone(str(artifact.with_name("artifact-checkpoint")))
    manifest = load_manifest(artifact)
    gate = str(artifact / GATE_FILE) if manifest.gate else NO_GATE
    scorer = str(artifact / SCORER_FILE) if manifest.geometry.recall_slots else None
    config = EdgeInfiniteConfig(manifest.geometry, gate, scorer=scorer)
    return TorchEngine(attach(backbone.model, config))


def test_the_program_keeps_the_same_slots_as_pytorch_at_every_token(artifact: Path) -> None:
    subject, reference = Session(load_engine(artifact)), Session(reference_of(artifact))
    for token in np.random.default_rng(0).integers(2, 200, 150).tolist():
        assert_close(subject.append([token]), reference.append([token]), 1e-4)
        np.testing.assert_array_equal(subject.state.length, reference.state.length)
    assert subject.compressions > 3
    for name, array in reference.state.arrays.items():
        ours = subject.state.arrays[name]
        if "_cache_" in name:
            used = slice(int(reference.state.length[int(name[-1])]))
            assert_close(ours.transpose(0, 2, 1, 3)[:, :, used], array[:, :, used], 1e-4)
        else:
            assert_close(ours, array, 1e-4)


def test_any_chunk_length_gives_the_same_logits(artifact: Path) -> None:
    engine = load_engine(artifact)
    tokens = np.random.default_rng(1).integers(2, 200, 150).tolist()
    expected = Session(engine).append(tokens)
    for chunk_length in (1, 3, 8):
        assert_close(Session(engine, chunk_length=chunk_length).append(tokens), expected, 1e-4)


def test_the_exports_own_check_compared_the_moved_caches(artifact: Path) -> None:
    manifest = load_manifest(artifact)
    assert manifest.parity["parity:k_cache"] < 1e-4 and manifest.parity["parity:logits"] < 1e-4
    geometry = manifest.geometry
    assert manifest.details["compress_memory"]["undelegated"].get("aten.topk", 0) == 2 * sum(
        geometry.slots_of(layer) > 0 for layer in range(2)
    )


def test_prefill_and_decode_have_as_few_partitions_as_without_slots(artifact: Path) -> None:
    details = load_manifest(artifact).details
    partitions = {name: details[name]["partitions"] for name in ("prefill_segment", "decode_step")}
    assert partitions == {"prefill_segment": 2, "decode_step": 1}
