"""A compression in fewer passes over the cache leaves the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.export.onnx import backend
from edgeinfinite.models.recall.scorer_file import save_scorers, untrained_scorers
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.session.session import Session

OPTIONS = ("--policy", "carry", "--segment-length", "24", "--sink-length", "4")
OPTIONS += ("--window-length", "8", "--recall-slots", "24")


def test_every_state_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tmp_path / "scorer.safetensors"
    scorers = [one.half() for one in untrained_scorers(2, 2, 8, 0)]
    save_scorers(scorer, scorers, RankRule(ranked_slots=16), {})
    given = (*OPTIONS, "--cache-type", "int8", "--scorer", str(scorer))
    few = tiny_artifact(tmp_path / "few", *given)
    with monkeypatch.context() as patched:
        patched.setattr(backend, "fewer_passes", lambda model: {})
        many = tiny_artifact(tmp_path / "many", *given)

    nodes = {
        folder: [
            node.op_type
            for node in onnx.load(
                folder / "compress_memory.onnx", load_external_data=False
            ).graph.node
        ]
        for folder in (few, many)
    }
    assert "DequantizeLinear" in nodes[few]
    assert len(nodes[few]) < len(nodes[many])
    assert nodes[few].count("Transpose") < nodes[many].count("Transpose")

    tokens = np.random.default_rng(5).integers(2, 250, 200)
    sessions = [Session(OnnxEngine(one, read_manifest(one), threads=1)) for one in (few, many)]
    for start in range(0, len(tokens), 40):
        logits = [session.append(tokens[start : start + 40]) for session in sessions]
        assert np.array_equal(*logits)
        first, second = (session.state.arrays for session in sessions)
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert sessions[0].compressions > 5
