"""Gemma 3 270M, 15 of whose 18 layers see 512 tokens only; `make test-gemma` fetches it.

Its weights are under Gemma's terms of use; they stay in `build/`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "build" / "gemma" / "gemma.gguf"
MEASURED = 1024
WINDOW, KV_HEADS, HEAD_DIM = 512, 1, 256
FULL_LAYERS = (5, 11, 17)
LENGTHS = GeometryOptions(window_length=960)
"""As many slots in both caches, few enough to be full after 1,024 tokens."""

pytestmark = [pytest.mark.slow, pytest.mark.gemma]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MODEL.is_file():
        pytest.skip(f"{MODEL} is missing; run make test-gemma")
    output = tmp_path_factory.mktemp("gemma") / "artifact"
    options = ExportOptions(
        str(MODEL), output, quantize="int4", geometry=LENGTHS, cache_type="float16"
    )
    return export_artifact(options)


def test_verify_passes(artifact):
    checks = verify_artifact(artifact, model=str(MODEL))
    assert [check for check in checks if not check.passed] == []


def test_fifteen_layers_hold_their_window_and_a_segment_and_nothing_else(artifact):
    manifest = read_manifest(artifact)
    segment, capacity = manifest.geometry.segment_length, manifest.geometry.capacity
    sizes = {spec.layer: spec.shape for spec in manifest.state if spec.role == "k_cache"}
    for layer, shape in sizes.items():
        slots = capacity if layer in FULL_LAYERS else WINDOW - 1 + segment
        assert shape == (1, KV_HEADS, slots, HEAD_DIM)
    slots = len(FULL_LAYERS) * capacity + 15 * (WINDOW - 1 + segment)
    counters = 8 * 18 + 4
    assert Session(load_engine(artifact)).state_bytes == 2 * 2 * slots * HEAD_DIM + counters


@pytest.fixture(scope="module")
def bytes_artifact(artifact: Path) -> Path:
    output = artifact.with_name("bytes")
    options = ExportOptions(str(MODEL), output, quantize="int4", geometry=LENGTHS)
    return export_artifact(options)


def test_a_cache_of_bytes_is_half_as_large(artifact, bytes_artifact):
    half, whole = (Session(load_engine(a)).state_bytes for a in (bytes_artifact, artifact))
    counters = 8 * 18 + 4
    assert 2 * (half - counters) == whole - counters


@pytest.mark.parametrize("kind", ["artifact", "bytes_artifact"])
def test_a_long_text_costs_little_more_than_with_full_attention_and_whole_weights(kind, request):
    """The last 1,024 of 2,048 tokens: the cache is full after the first of them, and the weights
    have 4 to 8 bits. 0.024 nats are lost; on 512 tokens the order of the same sums moved it by
    0.007."""
    artifact = request.getfixturevalue(kind)
    tokens = book(artifact)
    session = Session(load_engine(artifact))
    logits = session.append(tokens[:-MEASURED])
    losses = []
    for token in tokens[-MEASURED:]:
        losses.append(float(np.logaddexp.reduce(logits.astype(np.float64)) - logits[token]))
        logits = session.append([token])
    assert session.compressions > 5
    model = load_backbone(str(MODEL)).model
    with torch.inference_mode():
        rows = model(torch.tensor([tokens]), logits_to_keep=MEASURED + 1).logits[0, :-1]
    full = torch.nn.functional.cross_entropy(rows, torch.tensor(tokens[-MEASURED:]))
    assert np.mean(losses) < float(full) + 0.04


def book(artifact: Path) -> list[int]:
    text = (ROOT / "examples" / "draculas_guest.txt").read_text(encoding="utf-8")
    return load_tokenizer(artifact).encode_text(text)[:2048]
