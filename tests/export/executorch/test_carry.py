"""Policy `carry` in a program: the same slots as in PyTorch, at every token."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")
pytest.importorskip("torchao")

import torch
from tiny_artifact import tiny_artifact, tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import GATE_FILE, SCORER_FILE, load_manifest
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.recall.scorer_file import save_scorers, untrained_scorers
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close

CARRY = (
    *("--backend", "executorch", "--policy", "carry"),
    *("--segment-length", "8", "--window-length", "12", "--sink-length", "4"),
)
VARIANTS = {
    "window": CARRY,
    "slots by layer": (
        *(*CARRY, "--recall-slots", "8,88", "--scorer", "untrained"),
        *("--gate", "untrained"),
    ),
    "slots in one layer": (*CARRY, "--recall-slots", "16,0", "--scorer", "untrained"),
}


TOKENS = np.random.default_rng(0).integers(2, 200, 150).tolist()


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
    for token in TOKENS:
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


def test_more_layers_agree_than_xnnpack_joins_tensors(tmp_path: Path) -> None:
    """It joins five at most."""
    slots = ("--recall-slots", "16", "--scorer", "untrained")
    folder = tiny_artifact(tmp_path / "artifact", *CARRY, *slots, layers=6)
    subject, reference = Session(load_engine(folder)), Session(reference_of(folder))
    tokens = np.random.default_rng(0).integers(2, 200, 60).tolist()
    assert_close(subject.append(tokens), reference.append(tokens), 1e-4)
    for layer in range(6):
        ours, wanted = (s.state.arrays[f"scores_{layer}"] for s in (subject, reference))
        assert_close(ours, wanted, 1e-4)


@dataclass(frozen=True)
class ByRank:
    """An artifact whose scorer leaves slots to the newest pairs.

    Args:
        folder: the artifact.
        scorers: what it was exported with.
        without: each layer's scores in PyTorch where every pair may stay for its rank.
    """

    folder: Path
    scorers: list[RetentionScorer]
    without: list[np.ndarray]


@pytest.fixture(scope="module")
def by_rank(tmp_path_factory: pytest.TempPathFactory) -> ByRank:
    place = tmp_path_factory.mktemp("by-rank")
    path, rule = place / "scorer.safetensors", RankRule(ranked_slots=3, newest_share=0.25)
    scorers = untrained_scorers(2, 2, 8, seed=0)
    for scorer in scorers:
        scorer.w1.copy_(scorer.w1.half())
    save_scorers(path, scorers, rule, {})
    config = EdgeInfiniteConfig(Geometry(8, 4, 12, "carry", 16), NO_GATE, scorer=str(path))
    backbone = load_backbone(str(tiny_checkpoint(place / "checkpoint")))
    session = Session(TorchEngine(attach(backbone.model, config)))
    session.append(TOKENS)
    without = [session.state.arrays[f"scores_{layer}"][0].copy() for layer in range(2)]
    for scorer, scores in zip(scorers, without, strict=True):
        scorer.keep_threshold.copy_(torch.from_numpy(scores).quantile(0.7, -1, True))
    save_scorers(path, scorers, rule, {})
    command = (*CARRY, "--recall-slots", "16", "--scorer", str(path))
    return ByRank(tiny_artifact(place / "artifact", *command), scorers, without)


def test_pairs_below_the_keep_threshold_leave_slots_in_the_program_too(by_rank: ByRank) -> None:
    test_the_program_keeps_the_same_slots_as_pytorch_at_every_token(by_rank.folder)
    session = Session(load_engine(by_rank.folder))
    session.append(TOKENS)
    for layer in range(2):
        assert not np.allclose(session.state.arrays[f"scores_{layer}"][0], by_rank.without[layer])


def test_a_program_holds_the_scorer_once_and_in_half_precision(by_rank: ByRank) -> None:
    stored = (by_rank.folder / "model.pte").read_bytes()
    for scorer in by_rank.scorers:
        assert stored.count(scorer.w1.half().numpy().tobytes()) == 1
        assert stored.count(scorer.w1.numpy().tobytes()) == 0


def test_a_layer_may_have_only_streaming_heads(tmp_path: Path) -> None:
    """In the second layer one head of two streams."""
    scorers = untrained_scorers(2, 2, 8, seed=0)
    scorers[0].make_streaming(torch.tensor([True, True]))
    scorers[1].make_streaming(torch.tensor([True, False]))
    path = tmp_path / "scorer.safetensors"
    save_scorers(path, scorers, RankRule(), {})
    slots = ("--recall-slots", "8,24", "--scorer", str(path))
    folder = tiny_artifact(tmp_path / "artifact", *CARRY, *slots)
    test_the_program_keeps_the_same_slots_as_pytorch_at_every_token(folder)


def test_any_chunk_length_gives_the_same_logits(artifact: Path) -> None:
    engine = load_engine(artifact)
    tokens = np.random.default_rng(1).integers(2, 200, 150).tolist()
    expected = Session(engine).append(tokens)
    for chunk_length in (1, 3, 8):
        assert_close(Session(engine, chunk_length=chunk_length).append(tokens), expected, 1e-4)


def assert_same_state(one: Session, other: Session) -> None:
    """Up to each layer's own length."""
    np.testing.assert_array_equal(one.state.length, other.state.length)
    for name, array in one.state.arrays.items():
        used = ...
        if "_cache_" in name:
            used = (slice(None), slice(int(one.state.length[int(name[-1])])))
        assert_close(other.state.arrays[name][used], array[used], 1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_any_split_into_turns_and_single_tokens_is_one_prefill(artifact: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    left = random.integers(2, 200, int(random.integers(100, 220))).tolist()
    engine = load_engine(artifact)
    session, wanted = Session(engine), Session(engine)
    expected = wanted.append(left)
    while left:
        size = int(random.choice([1, 1, 2, 5, 32, 60]))
        part, left = left[:size], left[size:]
        for piece in [[token] for token in part] if random.random() < 0.5 else [part]:
            logits = session.append(piece)
    assert_close(logits, expected, 1e-4)
    assert_same_state(wanted, session)


def test_new_rows_go_to_each_layers_own_length_and_nowhere_else(artifact: Path) -> None:
    """In the caller's arrays, on lengths that differ where slots do."""
    engine = load_engine(artifact)
    session = Session(engine)
    session.append(np.random.default_rng(2).integers(2, 200, 145).tolist())
    state, slots = session.state, engine.geometry.slots_of
    assert state.length[0] - state.length[1] == slots(0) - slots(1)
    addresses = {name: array.ctypes.data for name, array in state.arrays.items()}
    for step in ([5, 6, 7], [8]):
        before = {name: array.copy() for name, array in state.arrays.items()}
        run = engine.prefill_segment if len(step) > 1 else engine.decode_step
        run(np.array([step]), state)
        for name, array in state.arrays.items():
            if "_cache_" in name:
                start = int(state.length[int(name[-1])])
                new = slice(start, start + len(step))
                assert not np.array_equal(array[:, new], before[name][:, new])
                before[name][:, new] = array[:, new]
            np.testing.assert_array_equal(array, before[name])
    assert addresses == {name: array.ctypes.data for name, array in state.arrays.items()}


def test_a_saved_session_resumes(artifact: Path, tmp_path: Path) -> None:
    engine = load_engine(artifact)
    session = Session(engine)
    session.append(np.random.default_rng(3).integers(2, 200, 150).tolist())
    save_session(session, tmp_path / "session")
    restored, _ = load_session(engine, tmp_path / "session")
    for tokens in ([5, 6, 7], [8], list(range(9, 40))):
        np.testing.assert_array_equal(restored.append(tokens), session.append(tokens))
    assert_same_state(session, restored)


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
