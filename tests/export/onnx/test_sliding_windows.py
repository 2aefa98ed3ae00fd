"""Hybrid models through the ONNX back end: sliding layers hold their window, as in PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import cache_type_of, read_manifest
from edgeinfinite.export.verify import configuration_of, verify_artifact
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, tiny_hybrid

WINDOW = 11
LENGTHS = ("--segment-length", "8", "--window-length", "12", "--sink-length", "4")
SLOTS = ("--recall-slots", "16", "--scorer", "untrained")
SHORT = ("--segment-length", "8", "--window-length", "4", "--sink-length", "4")
"""Fewer slots in all than the other layers' windows have tokens."""

BY_LAYER = ("--recall-slots", "0,16,0,8", "--scorer", "untrained")
VARIANTS = {
    "Gemma2": (2, *LENGTHS, *SLOTS),
    "Gemma3": (4, *LENGTHS, *BY_LAYER),
    "SmolLM3": (2, *LENGTHS, *SLOTS),
    "Mistral": (2, "--segment-length", "8"),  # every layer slides
    "Gemma2 in bytes": (2, *LENGTHS, "--cache-type", "int8"),  # scores have a softcap
    "Gemma3 in bytes": (4, *SHORT, "--cache-type", "int8"),
    "GraniteSWA": (4, *LENGTHS, *BY_LAYER),  # scores have learned sinks
    "GraniteSWA in bytes": (4, *LENGTHS, "--cache-type", "int8"),
    "GraniteSWA in halves": (4, *SHORT, "--cache-type", "float16"),
}
"""Layers, then options."""

ROUNDING = {"float32": 1e-4, "int8": 5e-2, "float16": 5e-3}
EXACT = {"float32": 1e-5, "int8": 0.1, "float16": 5e-3}
"""To the backbone itself."""


@pytest.fixture(scope="module", params=VARIANTS)
def artifact(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layers, *options = VARIANTS[request.param]
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-")) / "artifact"
    model = tiny_hybrid(
        request.param.split()[0], WINDOW, layers=layers, width=16, vocabulary=VOCABULARY
    )
    return tiny_artifact(folder, "--policy", "carry", *options, model=model)


def checkpoint_of(artifact: Path) -> str:
    return str(artifact.with_name("artifact-checkpoint"))


def test_the_artifact_computes_what_pytorch_computes_at_every_token(artifact):
    manifest = read_manifest(artifact)
    config = configuration_of(artifact, manifest)
    model = attach(load_backbone(checkpoint_of(artifact)).model, config)
    tolerance = ROUNDING[config.cache_type]
    subject, reference = Session(load_engine(artifact)), Session(TorchEngine(model))
    for token in np.random.default_rng(0).integers(2, 200, 120).tolist():
        assert_close(subject.append([token]), reference.append([token]), tolerance)
        np.testing.assert_array_equal(subject.state.length, reference.state.length)
    for name, array in reference.state.arrays.items():
        used = ...
        if "_cache_" in name:
            used = (..., slice(int(reference.state.length[int(name[-1])])), slice(None))
        assert_close(subject.state.arrays[name][used], array[used], tolerance)


def test_while_the_other_layers_have_room_it_computes_what_the_backbone_computes(artifact):
    """Mistral's layers all slide: there any text is short enough."""
    engine = load_engine(artifact)
    base = load_backbone(checkpoint_of(artifact)).model
    length, geometry = 100, engine.geometry
    if geometry.has_windows:
        sizes = enumerate(geometry.capacities(base.config.num_hidden_layers))
        length = min(size for layer, size in sizes if not geometry.slides(layer))
    tokens = np.random.default_rng(1).integers(2, 200, length).tolist()
    for chunk_length in (1, 3, 8):
        logits = Session(engine, chunk_length=chunk_length).append(tokens)
        with torch.inference_mode():
            expected = base(torch.tensor([tokens])).logits[0, -1]
        assert_close(logits, expected, EXACT[cache_type_of(read_manifest(artifact))])


def test_sliding_layers_have_a_state_of_their_window_and_a_segment(artifact):
    manifest = read_manifest(artifact)
    sizes = {spec.layer: spec.shape[2] for spec in manifest.state if spec.role == "k_cache"}
    geometry = manifest.geometry
    sliding = [layer for layer in sizes if geometry.slides(layer)]
    assert bool(sliding) == (manifest.backbone.architecture != "MistralForCausalLM")
    assert all(sizes[layer] == WINDOW - 1 + 8 for layer in sliding)
    if not sliding:
        assert set(sizes.values()) == {WINDOW - 1 + 8}
    recalling = {spec.layer for spec in manifest.state if spec.role == "scores"}
    assert not recalling & set(sliding)


def test_verify_passes_and_sessions_are_restored(artifact, tmp_path):
    checks = verify_artifact(artifact, model=checkpoint_of(artifact))
    assert [check for check in checks if not check.passed] == []
    session = Session(load_engine(artifact))
    session.append(np.random.default_rng(2).integers(2, 200, 90).tolist())
    save_session(session, tmp_path / "a.session")
    restored, _ = load_session(session.engine, tmp_path / "a.session")
    np.testing.assert_array_equal(restored.append([5, 6, 7]), session.append([5, 6, 7]))


def test_a_small_state_is_of_bytes_which_hold_more(tmp_path):
    model = tiny_hybrid("Gemma3", WINDOW, layers=4, width=16, vocabulary=VOCABULARY)
    slots = {}
    for cache_type, more in (("float16", ("--cache-type", "float16")), ("int8", ())):
        folder = tmp_path / cache_type
        asked = ("--policy", "carry", *LENGTHS, "--scorer", "untrained", "--state-mb", "0.02")
        tiny_artifact(folder, *asked, *more, model=model)
        manifest = read_manifest(folder)
        assert cache_type_of(manifest) == cache_type
        slots[cache_type] = manifest.geometry.most_slots
    assert slots["int8"] > 2 * slots["float16"] > 0
