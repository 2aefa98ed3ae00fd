"""Over an int8 cache many tokens and few are attended in two ways: the same numbers and bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.export.onnx.passes.int8_prefill import FEW_TOKENS, keep_few_tokens_way
from edgeinfinite.export.parity.operations import TOKENS
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from tiny import assert_close, tiny_hybrid

LENGTHS = ("--segment-length", "24", "--sink-length", "4", "--window-length", "8")
FAMILIES = {"Llama": 2, "Gemma2": 2, "Gemma3": 4, "GraniteSWA": 2}
"""Layers. Gemma 2's scores have a softcap, Granite's learned sinks; all but Llama have layers with
sliding windows."""


@pytest.fixture(scope="module", params=FAMILIES)
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    layers = FAMILIES[request.param]
    model = None
    if request.param != "Llama":
        model = tiny_hybrid(request.param, 16, layers=layers, width=16, vocabulary=VOCABULARY)
    folder = tmp_path_factory.mktemp(request.param) / "artifact"
    return tiny_artifact(folder, "--policy", "carry", *LENGTHS, "--cache-type", "int8", model=model)


@pytest.fixture(scope="module")
def engines(artifact: Path) -> tuple[OnnxEngine, OnnxEngine]:
    """With both ways, and with the operator for int8 caches alone."""
    few = artifact.with_name("few")
    shutil.copytree(artifact, few)
    model = onnx.load(few / "prefill_segment.onnx", load_external_data=False)
    keep_few_tokens_way(model)
    onnx.save(model, few / "prefill_segment.onnx")
    manifest = read_manifest(artifact)
    return OnnxEngine(artifact, manifest, threads=1), OnnxEngine(few, manifest, threads=1)


def operators(artifact: Path, name: str) -> list[str]:
    graph = onnx.load(artifact / f"{name}.onnx", load_external_data=False).graph
    return [node.op_type for node in graph.node]


def test_only_prefill_chooses(artifact: Path) -> None:
    layers = read_manifest(artifact).backbone.layers
    assert operators(artifact, "prefill_segment").count("If") == layers
    decode = operators(artifact, "decode_step")
    assert "If" not in decode and "ScatterND" not in decode and "Greater" not in decode
    assert decode.count("GroupQueryAttention") == layers


def test_other_caches_have_one_way(tmp_path: Path) -> None:
    artifact = tiny_artifact(tmp_path / "artifact", "--cache-type", "float16")
    assert "If" not in operators(artifact, "prefill_segment")


@settings(max_examples=40, deadline=None)
@given(before=st.integers(0, 20), tokens=st.integers(1, 16), seed=st.integers(0, 99))
def test_both_ways_give_the_same_caches_and_logits(
    engines: tuple[OnnxEngine, OnnxEngine], before: int, tokens: int, seed: int
) -> None:
    drawn = np.random.default_rng(seed).integers(2, 250, (1, before + tokens))
    made = []
    for engine in engines:
        state = engine.new_state()
        for start in range(0, before, FEW_TOKENS):  # the same state for both
            piece = drawn[:, start : min(start + FEW_TOKENS, before)]
            engine.prefill_segment(piece, state)
            state.length[...] += piece.shape[1]
        logits = engine.prefill_segment(drawn[:, before:], state)
        made.append((logits, state))
    (logits, state), (expected, other) = made
    first, flips = True, 0
    for name, array in other.arrays.items():
        if "_cache_" not in name:
            continue
        steps = np.abs(state.arrays[name].astype(int) - array)
        # Later layers read what the first one rounded otherwise, in the last bit of a float.
        assert steps.max() <= (0 if tokens <= FEW_TOKENS or name.endswith("_cache_0") else 1)
        assert (steps > 0).mean() < 0.01
        flips += int((steps > 0).sum())
        first = first and bool(array.any())
    assert first, "every cache was written"
    # A code that was rounded otherwise is worth 2e-3 here; without one only floats differ.
    assert_close(logits, expected, 0 if tokens <= FEW_TOKENS else 1e-2 if flips else 2e-5)


def changed(artifact: Path, folder: Path, change: Callable[[onnx.GraphProto], None]) -> Path:
    """A copy in which the first layer's way for many tokens is another."""
    shutil.copytree(artifact, folder)
    model = onnx.load(folder / "prefill_segment.onnx", load_external_data=False)
    (node, *_) = [n for n in model.graph.node if n.op_type == "If"]
    change(next(a.g for a in node.attribute if a.name == "then_branch"))
    onnx.save(model, folder / "prefill_segment.onnx")
    return folder


def test_a_sound_artifact_passes(artifact: Path, tmp_path: Path) -> None:
    same = changed(artifact, tmp_path / "artifact", lambda _: None)
    checks = verify_artifact(same, model=f"{artifact}-checkpoint")
    assert checks and all(check.passed for check in checks)


def without_the_scales_of_v(way: onnx.GraphProto) -> None:
    """The result stays in steps of the codes."""
    (product,) = [n for n in way.node if n.output[0].endswith("_result_scaled")]
    product.op_type, product.input[:] = "Identity", product.input[:1]


def scales_of_k_for_v(way: onnx.GraphProto) -> None:
    value, key = (
        next(n for n in way.node if n.output[0].endswith(f"_{name}_steps"))
        for name in ("value", "key")
    )
    value.input[0] = key.input[0]


def one_slot_late(way: onnx.GraphProto) -> None:
    """New pairs are written behind their places."""
    (start,) = [n for n in way.node if n.output[0].endswith("_end")]
    late = onnx.helper.make_node("Add", [start.output[0], "int8_one"], ["late"])
    for node in way.node:
        node.input[:] = ["late" if name == start.output[0] else name for name in node.input]
    way.node.insert(list(way.node).index(start) + 1, late)


@pytest.mark.parametrize(
    "change", [without_the_scales_of_v, scales_of_k_for_v, one_slot_late], ids=lambda c: c.__name__
)
def test_a_fault_in_the_second_way_is_found(
    artifact: Path, change: Callable[[onnx.GraphProto], None], tmp_path: Path
) -> None:
    assert TOKENS > FEW_TOKENS, "parity looks at the second way"
    broken = changed(artifact, tmp_path / "artifact", change)
    checks = verify_artifact(broken, model=f"{artifact}-checkpoint")
    assert not all(check.passed for check in checks)
