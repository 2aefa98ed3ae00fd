"""Artifacts whose scorer has a second network, on both back ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.models.recall.scorer import KEEP_ALL
from edgeinfinite.models.recall.scorer_file import save_scorers, untrained_scorers
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session

RULE = RankRule(ranked_slots=16)
"""Of 64 slots, the second network ranks the pairs for 48."""


@pytest.fixture(params=["onnx", "executorch"])
def backend(request: pytest.FixtureRequest) -> str:
    pytest.importorskip({"onnx": "onnxruntime", "executorch": "executorch"}[request.param])
    return str(request.param)


def scorer_file(folder: Path, second: bool) -> Path:
    """A random scorer for the tiny checkpoint, whose first layer's first head streams."""
    folder.mkdir(exist_ok=True)
    scorers = untrained_scorers(2, 2, 8, 0)
    scorers[0].make_streaming(torch.tensor([True, False]))
    for scorer in scorers:
        scorer.keep_threshold.copy_(torch.where(scorer.retrieval.bool(), 5.0, KEEP_ALL))
        if second:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(5)
                scorer.add_repeats(4).requires_grad_(False)
    path = folder / f"{second}.safetensors"
    save_scorers(path, [scorer.half() for scorer in scorers], RULE, {})
    return path


@pytest.mark.parametrize("cache_type", ["float32", "int8"])
def test_an_artifact_with_a_second_network_computes_what_the_checkpoint_computes(
    tmp_path: Path, backend: str, cache_type: str
) -> None:
    if (backend, cache_type) == ("executorch", "int8"):
        pytest.skip(
            "a second network's program with bytes takes long; executorch/test_int8_cache.py"
        )
    options = ["--backend", backend, "--policy", "carry", "--recall-slots", "64"]
    options += ["--cache-type", cache_type]
    logits = []
    for second in (True, False):
        scorer = scorer_file(tmp_path / "scorers", second)
        folder = tiny_artifact(tmp_path / f"{second}", *options, "--scorer", str(scorer))
        checks = verify_artifact(folder, model=str(tmp_path / f"{second}-checkpoint"))
        assert [check for check in checks if not check.passed] == []
        session = Session(load_engine(folder))
        logits.append(session.append(np.random.default_rng(0).integers(2, 250, 400).tolist()))
    assert np.abs(np.subtract(*logits)).max() > 1e-3
