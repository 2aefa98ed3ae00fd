"""SmolLM2-135M-Instruct as an int4 program: it answers, costs little, and keeps its budgets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

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
TEXT = Path(__file__).parents[2] / "examples" / "dogs.txt"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an untrained gate, at lengths that keep the export's own check short."""
    output = tmp_path_factory.mktemp("real") / "artifact"
    geometry = Geometry(segment_length=256, sink_length=64, window_length=64)
    options = ExportOptions(MODEL, output, backend="executorch", quantize="int4", geometry=geometry)
    return export_artifact(options)


def test_it_keeps_its_budgets(artifact: Path) -> None:
    manifest = read_manifest(artifact)
    partitions = {name: method["partitions"] for name, method in manifest.details.items()}
    assert partitions == {"prefill_segment": 2, "decode_step": 1, "compress_memory": 1}
    assert sum(entry.size for entry in manifest.files.values()) < 100e6
    assert manifest.parity["parity:memory"] < 1e-4  # three compressions went by
    assert manifest.parity["greedy_agreement"] >= 0.95


def test_it_answers(artifact: Path) -> None:
    tokenizer = load_tokenizer(artifact)
    session = Session(load_engine(artifact))
    logits = session.append(tokenizer.encode_chat([{"role": "user", "content": QUESTION}]))
    answer = []
    for _ in range(24):
        answer.append(int(logits.argmax()))
        logits = session.append(answer[-1:])
    assert "Paris" in tokenizer.decode(answer)


def test_the_methods_share_their_packed_weights(artifact: Path) -> None:
    """About 100 MB are packed, when the first method is loaded; the second adds its graph only."""
    program = """
import sys
from pathlib import Path
from edgeinfinite.runtime_py.engines.executorch_engine import _executorch
from edgeinfinite.runtime_py.engines.xnnpack_options import share_packed_weights
runtime = _executorch()[1]
assert share_packed_weights(runtime, True)
program = runtime._load_program(sys.argv[1])
methods = []
for name in ("decode_step", "prefill_segment"):
    methods.append(program.load_method(name))
    print(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])
"""
    command = [sys.executable, "-c", program, str(artifact / "model.pte")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    first, second = map(int, done.stdout.split())
    assert second - first < 30_000  # KiB


def test_four_bits_cost_less_than_a_twentieth_of_a_nat(artifact: Path) -> None:
    """Against transformers in float32, on 320 tokens. Symmetric weights alone cost 0.35."""
    tokens = load_tokenizer(artifact).encode_text(TEXT.read_text(encoding="utf-8"))[:320]
    with torch.inference_mode():
        base = load_backbone(MODEL).model(torch.tensor([tokens])).logits[0].log_softmax(-1).numpy()
    session = Session(load_engine(artifact))
    losses = []
    for i, token in enumerate(tokens[:-1]):
        logits = session.append([token]).astype(np.float64)
        logits -= logits.max()
        ours = logits[tokens[i + 1]] - np.log(np.exp(logits).sum())
        losses.append(float(base[i, tokens[i + 1]]) - ours)
    assert np.mean(losses) < 0.05
