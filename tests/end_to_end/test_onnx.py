"""SmolLM2-135M-Instruct end to end: the exported file computes what the checkpoint computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

MODEL = "smollm2-135m-instruct"
QUESTION = "What is the capital of France, and which river runs through it?"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Float32, with an untrained gate, at lengths that keep the export's own check short."""
    output = tmp_path_factory.mktemp("real") / "artifact"
    geometry = Geometry(segment_length=256, sink_length=64, window_length=64)
    return export_artifact(ExportOptions(MODEL, output, geometry=geometry))


def test_a_short_prompt_equals_transformers_in_logits_and_greedy_tokens(artifact):
    base = load_backbone(MODEL).model
    tokenizer = load_tokenizer(artifact)
    tokens = tokenizer.encode_chat([{"role": "user", "content": QUESTION}])
    session = Session(load_engine(artifact))
    logits = session.append(tokens)
    for _ in range(24):
        with torch.inference_mode():
            expected = base(torch.tensor([tokens])).logits[0, -1].numpy()
        assert np.abs(logits - expected).max() < 1e-4
        assert logits.argmax() == expected.argmax()
        tokens.append(int(logits.argmax()))
        logits = session.append(tokens[-1:])
    assert "Paris" in tokenizer.decode(tokens[-24:])


def test_the_exports_own_check_went_through_three_compressions(artifact):
    parity = read_manifest(artifact).parity
    assert parity["parity:logits"] < 1e-4 and parity["parity:memory"] < 1e-4
    assert parity["greedy_agreement"] == 1.0


def test_a_book_of_four_thousand_tokens_is_read_in_the_same_state(artifact):
    text = (Path(__file__).parents[2] / "examples" / "dogs.txt").read_text(encoding="utf-8")
    tokens = load_tokenizer(artifact).encode_text(text)[:4000]
    whole = Session(load_engine(artifact))
    before = whole.state_bytes
    expected = whole.append(tokens)
    parts = Session(whole.engine, chunk_length=77)
    for start in range(0, 4000, 1000):
        logits = parts.append(tokens[start : start + 1000])
    assert whole.compressions == parts.compressions > 10
    assert whole.state_bytes == before
    assert np.abs(logits - expected).max() < 1e-2 * np.abs(expected).max()


def test_as_shipped_a_long_text_costs_little_more(shipped: Path) -> None:
    """Beside full attention and whole weights, when slots have been filled anew for some time."""
    engine = load_engine(shipped)
    text = (Path(__file__).parents[2] / "examples" / "dogs.txt").read_text(encoding="utf-8")
    tokens = load_tokenizer(shipped).encode_text(text)[:4000]
    session, measured, losses = Session(engine), 256, []
    assert session.state_bytes < 25.5e6
    logits = session.append(tokens[:-measured])
    for token in tokens[-measured:]:
        losses.append(float(np.logaddexp.reduce(logits.astype(np.float64)) - logits[token]))
        logits = session.append([token])
    assert session.compressions > 20
    with torch.inference_mode():
        model = load_backbone(MODEL).model
        rows = model(torch.tensor([tokens]), logits_to_keep=measured + 1).logits[0, :-1]
    full = torch.nn.functional.cross_entropy(rows, torch.tensor(tokens[-measured:]))
    assert np.mean(losses) < float(full) + 0.1


_PREFILL_ALONE = """
import sys
import onnxruntime
from edgeinfinite.runtime_py.benchmark.worker import own_peak_bytes
session = onnxruntime.InferenceSession(sys.argv[1] + "/prefill_segment.onnx")
print(own_peak_bytes())
"""

_ALL_GRAPHS = """
import sys
from pathlib import Path
from edgeinfinite.runtime_py.benchmark.worker import own_peak_bytes
from edgeinfinite.runtime_py.engines import load_engine
engine = load_engine(Path(sys.argv[1]))
state = engine.new_state()
import numpy as np
engine.prefill_segment(np.array([[5, 6, 7]]), state)
engine.decode_step(np.array([[5]]), state)
print(own_peak_bytes())
"""


def test_both_graphs_take_the_memory_of_one(artifact):
    one, both = (
        int(subprocess.check_output([sys.executable, "-c", program, str(artifact)]))
        for program in (_PREFILL_ALONE, _ALL_GRAPHS)
    )
    assert one > 500e6  # the weights are in there
    assert both <= 1.15 * one
