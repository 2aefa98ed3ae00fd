"""Algorithm 1 on ONNX Runtime equals Algorithm 1 in PyTorch, for any split of the text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_artifact import tiny_artifact
from transformers import AutoModelForCausalLM

from edgeinfinite.artifact.manifest import cache_type_of, read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.verify import configuration_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close

GEOMETRIES = {
    "small": (4, 8, 6, "float32"),
    "no sinks": (0, 8, 9, "float32"),
    "window of one": (3, 5, 1, "float32"),
    "half precision": (4, 8, 6, "float16"),
    "bytes": (4, 8, 6, "int8"),
}
ROUNDING = {"float32": 1e-4, "float16": 2e-2, "int8": 5e-2}
"""What these types round differently when a text is fed in other pieces adds up over the text."""


def options(sinks: int, segment: int, window: int, cache_type: str) -> list[str]:
    return [
        *("--cache-type", cache_type),
        *("--sink-length", str(sinks)),
        *("--segment-length", str(segment)),
        *("--window-length", str(window)),
    ]


@pytest.fixture(scope="module", params=GEOMETRIES)
def artifact(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sessions") / "artifact"
    return tiny_artifact(folder, *options(*GEOMETRIES[request.param]))


def checkpoint_of(artifact: Path) -> str:
    return str(artifact.with_name("artifact-checkpoint"))


@pytest.fixture(scope="module")
def engines(artifact):
    model = load_backbone(checkpoint_of(artifact)).model
    manifest = read_manifest(artifact)
    config = configuration_of(artifact, manifest)
    return load_engine(artifact), TorchEngine(attach(model, config))


def rounding(session: Session) -> float:
    return ROUNDING[str(session.state.arrays["k_cache_0"].dtype)]


def tokens_of(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(2, 250, count).tolist()


def assert_same_state(one: Session, other: Session) -> None:
    assert (one.tokens_read, one.compressions) == (other.tokens_read, other.compressions)
    assert one.residual == other.residual and one.cached == other.cached
    for name, array in other.state.arrays.items():
        used = (..., slice(other.cached), slice(None)) if "_cache_" in name else ...
        assert one.state.arrays[name].dtype == array.dtype
        assert_close(one.state.arrays[name][used], array[used], rounding(one))


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.integers(1, 25), min_size=1, max_size=5),
    chunk_length=st.integers(1, 12),
    decoded=st.integers(0, 20),
)
def test_any_split_on_onnx_equals_one_prefill_in_pytorch(engines, pieces, chunk_length, decoded):
    subject, reference = engines
    tokens = tokens_of(sum(pieces) + decoded)
    whole = Session(reference)
    expected = whole.append(tokens)
    session, start = Session(subject, chunk_length=chunk_length), 0
    for piece in [*pieces, *[1] * decoded]:
        logits = session.append(tokens[start : start + piece])
        start += piece
    assert_close(logits, expected, rounding(session))
    assert_same_state(session, whole)


def test_every_prompt_length_around_every_boundary_then_decode(engines):
    subject, reference = engines
    geometry = subject.geometry
    total = geometry.capacity + 2 * geometry.segment_length + 2
    tokens = tokens_of(total)
    whole = Session(reference)
    expected = whole.append(tokens)
    for prompt in range(1, total):
        session = Session(subject)
        session.append(tokens[:prompt])
        for token in tokens[prompt:]:
            logits = session.append([token])
        assert_close(logits, expected, rounding(session))
        assert_same_state(session, whole)


def test_a_short_prompt_equals_transformers_and_so_does_its_greedy_continuation(artifact, engines):
    base = AutoModelForCausalLM.from_pretrained(checkpoint_of(artifact), dtype=torch.float32)
    capacity = engines[0].geometry.capacity
    if cache_type_of(read_manifest(artifact)) == "int8":
        pytest.skip("in a random model the rounding of K and V shows; test_scales.py measures it")
    tokens = tokens_of(capacity // 2)
    session = Session(engines[0])
    logits = session.append(tokens)
    while len(tokens) < capacity - 1:
        with torch.inference_mode():
            expected = base(torch.tensor([tokens])).logits[0, -1].numpy()
        assert np.abs(logits - expected).max() < max(1e-4, rounding(session) / 2)
        assert logits.argmax() == expected.argmax()
        tokens.append(int(logits.argmax()))
        logits = session.append(tokens[-1:])


def test_two_sessions_on_one_engine_do_not_disturb_each_other(engines):
    subject, reference = engines
    texts = tokens_of(50, 1), tokens_of(50, 2)
    sessions = Session(subject), Session(subject)
    for pair in zip(*texts, strict=True):
        for session, token in zip(sessions, pair, strict=True):
            session.append([token])
    for session, text in zip(sessions, texts, strict=True):
        whole = Session(reference)
        whole.append(text)
        assert_same_state(session, whole)


def test_the_state_is_the_same_arrays_at_3000_and_at_100000_tokens(engines):
    session = Session(engines[0])
    session.append(tokens_of(3000))
    before = session.state_bytes, {n: a.ctypes.data for n, a in session.state.arrays.items()}
    session.append(tokens_of(97_000))
    after = session.state_bytes, {n: a.ctypes.data for n, a in session.state.arrays.items()}
    assert session.tokens_read == 100_000
    assert before == after
    assert all(np.isfinite(array).all() for array in session.state.arrays.values())


def test_the_caches_are_bound_not_copied(engines):
    """A row written by the host between two calls is what the next call attends to."""
    subject, _ = engines
    tokens = tokens_of(8)
    plain, changed = Session(subject), Session(subject)
    plain.append(tokens[:7])
    changed.append(tokens[:7])
    before = changed.state.arrays["v_cache_0"][:, :, :7].copy()
    changed.state.arrays["v_cache_0"][:, :, 2] *= -1
    different = np.abs(changed.append(tokens[7:]) - plain.append(tokens[7:])).max()
    assert different > 1e-4
    after = changed.state.arrays["v_cache_0"][:, :, :7]
    untouched = [slot for slot in range(7) if slot != 2]
    np.testing.assert_array_equal(after[:, :, untouched], before[:, :, untouched])


def test_a_call_that_fails_is_one_clear_error_and_changes_nothing(artifact):
    engine = load_engine(artifact)
    session, undisturbed = Session(engine), Session(engine)
    session.append([5, 6, 7])
    undisturbed.append([5, 6, 7])
    with pytest.raises(EdgeInfiniteError, match=r"onnxruntime failed in prefill_segment\.onnx: "):
        engine.prefill_segment(np.array([[10**6, 3]]), session.state)
    np.testing.assert_array_equal(session.append([8]), undisturbed.append([8]))
