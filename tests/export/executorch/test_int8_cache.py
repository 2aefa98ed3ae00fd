"""An int8 cache in a program: the codes that PyTorch and ONNX have, however a text is split."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib
from tiny_artifact import VOCABULARY, tiny_artifact
from torch import nn

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.export.executorch.codes import codes_of, numbers_of
from edgeinfinite.export.parity.calls import check_parity
from edgeinfinite.export.verify import configuration_of, verify_artifact
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.int8_cache.scales import rounded
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import state_bytes
from tiny import assert_close, tiny_llama

OPTIONS = (
    *("--backend", "executorch", "--policy", "carry", "--cache-type", "int8"),
    *("--segment-length", "8", "--window-length", "12", "--sink-length", "4"),
    *("--recall-slots", "24,8", "--scorer", "untrained"),
)
ROUNDING = 5e-2
"""A number halfway between two codes may fall to either."""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tiny_llama(heads=6, kv_heads=3, vocabulary=VOCABULARY)
    return tiny_artifact(tmp_path_factory.mktemp("int8") / "artifact", *OPTIONS, model=model)


def reference_of(artifact: Path) -> TorchEngine:
    backbone = load_backbone(str(artifact.with_name("artifact-checkpoint")))
    return TorchEngine(attach(backbone.model, configuration_of(artifact, load_manifest(artifact))))


class BothWays(nn.Module):
    """Numbers `[1, T, K, D]` to codes and back."""

    def __init__(self, scale: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)

    def forward(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        codes = codes_of(numbers, self.scale)
        return codes, numbers_of(codes)


def test_xnnpack_rounds_as_pytorch_does(tmp_path: Path) -> None:
    """Also what lies between two codes, and what no byte holds."""
    scale = torch.tensor([[0.5, 0.03], [2.0, 1e-6]])
    steps = torch.tensor([-200.0, -128.5, -2.5, -1.5, -0.5, 0.2, 0.5, 1.5, 2.5, 126.5, 127.5, 1e6])
    numbers = (steps.reshape(1, -1, 1, 1) * scale).contiguous()
    program = torch.export.export(BothWays(scale), (numbers,), strict=False)
    lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    kinds = [str(node.target) for node in lowered.exported_program().graph.nodes]
    assert not any("quantize_per_tensor" in kind for kind in kinds)  # XNNPACK has them
    buffer = lowered.to_executorch().buffer
    codes, back = portable_lib._load_for_executorch_from_buffer(buffer).forward([numbers])
    wanted = rounded(numbers.transpose(1, 2), scale).transpose(1, 2)
    assert codes.dtype == torch.int8 and torch.equal(codes, wanted)
    assert torch.equal(back, wanted.float())


def test_k_and_v_take_a_quarter_of_the_bytes_and_no_method_has_more_parts(artifact: Path) -> None:
    manifest = load_manifest(artifact)
    types = {spec.name: spec.dtype for spec in manifest.state}
    assert types["k_cache_0"] == types["v_cache_1"] == "int8" and types["scores_1"] == "float32"
    caches = [spec for spec in manifest.state if spec.is_cache]
    numbers = sum(math.prod(map(int, spec.shape)) for spec in caches)
    assert state_bytes(caches) == numbers
    details = manifest.details
    partitions = {name: details[name]["partitions"] for name in ("prefill_segment", "decode_step")}
    assert partitions == {"prefill_segment": 2, "decode_step": 1}  # as with float32 caches


def test_verify_passes_also_in_exact_arithmetic(artifact: Path) -> None:
    checkpoint = str(artifact.with_name("artifact-checkpoint"))
    checks = {check.check: check for check in verify_artifact(artifact, model=checkpoint)}
    assert [check for check in checks.values() if not check.passed] == []
    for name in ("exact:logits", "exact:k_cache", "exact:v_cache"):
        assert checks[name].value < 1e-5


@pytest.mark.parametrize("role", ["key", "value"])
def test_wrong_scales_are_found(artifact: Path, role: str) -> None:
    """The reference has one channel with steps twice as large."""
    reference = reference_of(artifact)
    for cache in attention_layers(reference.model):
        getattr(cache.cache_scales, role)[0, 0] *= 2
    failed = {c.check for c in check_parity(artifact, reference) if not c.passed}
    assert f"parity:{role[0]}_cache" in failed


def test_new_rows_are_the_codes_that_pytorch_writes(artifact: Path) -> None:
    engine, reference = load_engine(artifact), reference_of(artifact)
    ours, wanted = engine.new_state(), reference.new_state()
    for step in ([5, 6, 7, 8, 9], [10]):
        for one, state in ((engine, ours), (reference, wanted)):
            run = one.prefill_segment if len(step) > 1 else one.decode_step
            run(np.array([step]), state)
            state.length[...] += len(step)
    for name, array in wanted.arrays.items():
        if "_cache_" in name:
            codes = ours.arrays[name].transpose(0, 2, 1, 3)[:, :, :6].astype(int)
            assert np.abs(array[:, :, :6]).max() > 10
            assert np.abs(codes - array[:, :, :6]).max() <= 1, name
            assert np.mean(codes != array[:, :, :6]) < 0.01, name


@pytest.mark.parametrize("seed", range(3))
def test_any_split_of_a_text_gives_one_state(artifact: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    left = random.integers(2, 200, 150).tolist()
    engine = load_engine(artifact)
    session, wanted = Session(engine), Session(engine)
    expected = wanted.append(left)
    assert wanted.compressions > 3
    while left:
        size = int(random.choice([1, 1, 2, 5, 32]))
        part, left = left[:size], left[size:]
        logits = session.append(part)
    assert_close(logits, expected, ROUNDING)
    np.testing.assert_array_equal(session.state.length, wanted.state.length)


def test_a_saved_session_and_a_fork_resume_bit_for_bit(artifact: Path, tmp_path: Path) -> None:
    engine = load_engine(artifact)
    session = Session(engine)
    session.append(np.random.default_rng(3).integers(2, 200, 150).tolist())
    save_session(session, tmp_path / "session")
    restored, _ = load_session(engine, tmp_path / "session")
    assert not restored.taken_over
    others = [restored, session.fork()]
    for tokens in ([5, 6, 7], [8], list(range(9, 40))):
        expected = session.append(tokens)
        for other in others:
            np.testing.assert_array_equal(other.append(tokens), expected)
