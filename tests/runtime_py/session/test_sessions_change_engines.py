"""A text begun on one engine goes on in another one, at any point, and back."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

import torch
from safetensors.torch import load_file, save_file
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import GATE_FILE, SCORER_FILE, load_manifest, model_digest
from edgeinfinite.artifact.tensors import TensorSpec
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session

TOLERANCE = 3e-5
"""Of float32 in another order, relative to the largest magnitude."""

FLOATS = ("torch", "onnx", "executorch")
OTHERS = {
    "half": ("--cache-type", "float16"),
    "bytes": ("--cache-type", "int8"),
    "bytes in a program": ("--backend", "executorch", "--cache-type", "int8"),
    "int8": ("--quantize", "int8", "--cache-type", "float16"),
}
BYTES = ("bytes", "bytes in a program")
BYTES_TOLERANCE = 5e-2
"""A number halfway between two codes may fall to either."""

LENGTHS = ("--segment-length", "16", "--sink-length", "4", "--window-length", "8")
POLICIES = {
    "carry": ("--policy", "carry", "--recall-slots", "16,32", "--scorer", "untrained"),
    "reencode": ("--policy", "reencode"),
}
TEXT = np.random.default_rng(3).integers(2, 250, 160).tolist()


@pytest.fixture(scope="module", params=POLICIES)
def engines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Of one checkpoint with one gate, wide open so that an error in M shows."""
    place = tmp_path_factory.mktemp("engines")
    form = [*LENGTHS, *POLICIES[request.param]]
    drawn = tiny_artifact(place / "drawn", *form, "--gate", "untrained")
    gate = {name: torch.randn_like(value) for name, value in load_file(drawn / GATE_FILE).items()}
    save_file(gate, place / GATE_FILE)
    checkpoint = str(place / "drawn-checkpoint")

    def exported(name: str, *options: str) -> Engine:
        command = ["export", "--model", checkpoint, *form, "--gate", str(place / GATE_FILE)]
        assert main([*command, *options, "--output", str(place / name)]) == 0
        return load_engine(place / name, threads=1)

    made: dict[str, Engine] = {"onnx": exported("onnx")}
    made["executorch"] = exported("executorch", "--backend", "executorch")
    made["half"] = exported("half", *OTHERS["half"])
    for name in BYTES:
        made[name] = exported(name, *OTHERS[name])
    if request.param == "carry":
        made["int8"] = exported("int8", *OTHERS["int8"])
    made["torch"] = _in_torch(checkpoint, place / "onnx")
    return made


def _in_torch(checkpoint: str, artifact: Path) -> TorchEngine:
    manifest = load_manifest(artifact)
    scorer = str(artifact / SCORER_FILE) if manifest.scorer else None
    config = EdgeInfiniteConfig(manifest.geometry, str(artifact / GATE_FILE), scorer=scorer)
    engine = TorchEngine(attach(load_backbone(checkpoint).model, config))
    assert engine.model_digest == model_digest(manifest)
    return engine


def in_one_layout(session: Session, spec: TensorSpec) -> np.ndarray:
    """What counts of a state tensor; caches with the axes `B K C D`."""
    array = session.state.in_use(spec)
    if not spec.is_cache:
        return array
    return array.transpose([spec.dims.split().index(axis) for axis in "BKCD"])


def tensors(session: Session) -> Iterator[tuple[str, np.ndarray]]:
    for spec in session.state.specs:
        yield spec.name, in_one_layout(session, spec)


def assert_same(one: Session, other: Session, tolerance: float) -> None:
    for counter in ("tokens_read", "compressions", "cached", "residual", "unread"):
        assert getattr(one, counter) == getattr(other, counter)
    others = dict(tensors(other))
    for name, array in tensors(one):
        _assert_near(array, others[name], tolerance, name)


def _assert_near(one: np.ndarray, other: np.ndarray, tolerance: float, name: str) -> None:
    assert one.shape == other.shape, name
    limit = tolerance * max(1.0, float(np.abs(one).max(initial=0)))
    assert float(np.abs(one - other).max(initial=0)) <= limit, name


def moved(session: Session, engine: Engine, path: Path) -> Session:
    save_session(session, path)
    return load_session(engine, path)[0]


@pytest.mark.parametrize("seed", range(6))
def test_a_text_that_wanders_between_engines_ends_as_one_that_stayed(
    engines: dict[str, Engine], tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    cuts = sorted({0, len(TEXT), *(dice.randrange(1, len(TEXT)) for _ in range(9))})
    stayed = Session(engines[dice.choice(FLOATS)])
    wanted = stayed.append(TEXT)
    assert stayed.compressions >= 6
    session = Session(engines[dice.choice(FLOATS)])
    for start, end in itertools.pairwise(cuts):
        session = moved(session, engines[dice.choice(FLOATS)], tmp_path / "a.session")
        logits = session.append(TEXT[start:end])
    assert_same(stayed, session, TOLERANCE)
    _assert_near(wanted, logits, TOLERANCE, "logits")
    for _ in range(20):
        token = int(wanted.argmax())
        assert int(logits.argmax()) == token
        session = moved(session, engines[dice.choice(FLOATS)], tmp_path / "a.session")
        wanted, logits = stayed.append([token]), session.append([token])


@pytest.mark.parametrize("length", [3, 30, 117])
def test_what_changes_hands_keeps_every_bit(
    engines: dict[str, Engine], tmp_path: Path, length: int
) -> None:
    for one, other in itertools.permutations(FLOATS, 2):
        session = Session(engines[one])
        session.append(TEXT[:length])
        there = moved(session, engines[other], tmp_path / "a.session")
        assert_same(session, there, 0.0)
        back = moved(there, engines[one], tmp_path / "a.session")
        assert_same(session, back, 0.0)
        assert there.taken_over and back.taken_over


def test_a_cache_in_float16_holds_the_nearest_numbers_and_goes_on(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    session = Session(engines["executorch"])
    session.append(TEXT[:90])
    there = moved(session, engines["half"], tmp_path / "a.session")
    found = dict(tensors(there))
    for name, array in tensors(session):
        expected = array.astype(found[name].dtype)
        np.testing.assert_array_equal(found[name], expected, name)
    assert found["k_cache_0"].dtype == np.float16
    back = moved(there, engines["torch"], tmp_path / "a.session")
    assert_same(there, back, 0.0)
    _assert_near(session.append(TEXT[90:93]), there.append(TEXT[90:93]), 2e-2, "logits")


def test_a_state_goes_on_under_another_quantization(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    if "int8" not in engines:
        pytest.skip("one policy is enough: the state's tensors are the float16 artifact's")
    session = Session(engines["executorch"])
    session.append(TEXT[:90])
    there = moved(session, engines["int8"], tmp_path / "a.session")
    there.append(TEXT[90:])
    assert there.taken_over and there.tokens_read == len(TEXT)
    again = moved(there, engines["int8"], tmp_path / "a.session")
    assert not again.taken_over
    np.testing.assert_array_equal(again.append([5]), there.append([5]))


def test_a_number_too_large_for_float16_is_one_line(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    session = Session(engines["onnx"])
    session.append(TEXT[:20])
    session.state.arrays["k_cache_1"][0, 0, 3, 0] = 1e5
    with pytest.raises(EdgeInfiniteError, match=r"k_cache_1 .*--cache-type float32"):
        moved(session, engines["half"], tmp_path / "a.session")


@pytest.mark.parametrize("length", [3, 30, 117])
def test_a_cache_of_bytes_goes_on_in_the_other_engine_bit_for_bit(
    engines: dict[str, Engine], tmp_path: Path, length: int
) -> None:
    for one, other in itertools.permutations(BYTES, 2):
        session = Session(engines[one])
        session.append(TEXT[:length])
        there = moved(session, engines[other], tmp_path / "a.session")
        assert_same(session, there, 0.0)
        assert there.state.arrays["k_cache_0"].dtype == np.int8
        back = moved(there, engines[one], tmp_path / "a.session")
        assert_same(session, back, 0.0)
        assert there.taken_over and back.taken_over
        wanted = session.append(TEXT[length : length + 3])
        _assert_near(wanted, there.append(TEXT[length : length + 3]), BYTES_TOLERANCE, "logits")


def test_bytes_in_steps_of_other_scales_are_refused(
    engines: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engines["bytes"])
    session.append(TEXT[:30])
    save_session(session, tmp_path / "a.session")
    for name in BYTES:
        load_session(engines[name], tmp_path / "a.session")
        monkeypatch.setattr(engines[name], "cache_scales", "0" * 64)
        with pytest.raises(EdgeInfiniteError, match="in steps that its artifact measured"):
            load_session(engines[name], tmp_path / "a.session")


def test_bytes_of_an_older_writer_go_on_with_their_own_artifact_alone(
    engines: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files don't say which scales they have."""
    session = Session(engines["bytes"])
    session.append(TEXT[:30])
    with monkeypatch.context() as older:
        older.setattr(engines["bytes"], "cache_scales", "")
        save_session(session, tmp_path / "a.session")
    assert not load_session(engines["bytes"], tmp_path / "a.session")[0].taken_over
    with pytest.raises(EdgeInfiniteError, match="in steps that its artifact measured"):
        load_session(engines["bytes in a program"], tmp_path / "a.session")


@pytest.mark.parametrize("bytes_", BYTES)
def test_a_cache_of_bytes_and_one_of_floats_dont_go_on_from_each_other(
    engines: dict[str, Engine], tmp_path: Path, bytes_: str
) -> None:
    for one, other in itertools.permutations(("onnx", bytes_), 2):
        session = Session(engines[one])
        session.append(TEXT[:90])
        with pytest.raises(EdgeInfiniteError, match="a session with an int8 cache"):
            moved(session, engines[other], tmp_path / "a.session")
        back = moved(session, engines[one], tmp_path / "a.session")
        assert not back.taken_over
        np.testing.assert_array_equal(back.append(TEXT[90:]), session.append(TEXT[90:]))


def test_tokens_left_unread_are_read_by_the_other_engine(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    whole, session = Session(engines["torch"]), Session(engines["executorch"])
    wanted = whole.append(TEXT)
    session.append(TEXT[:50])
    session.add_unread(TEXT[50:])
    there = moved(session, engines["onnx"], tmp_path / "a.session")
    _assert_near(wanted, there.append([]), TOLERANCE, "logits")
