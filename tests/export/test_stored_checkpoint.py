"""Exporting a sharded bfloat16 checkpoint: the artifact of a float32 one, in less memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import onnx
import pytest
import torch
from manifest_edit import edit_manifest
from tiny_artifact import GEOMETRY, VOCABULARY, tiny_checkpoint
from transformers import LlamaConfig, LlamaForCausalLM

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import file_entry
from edgeinfinite.cli import main
from edgeinfinite.export.onnx.passes import quantized_weights
from edgeinfinite.export.onnx.passes.quantized_weights import quantize_weights
from edgeinfinite.export.options import ExportOptions, QuantizationOptions
from edgeinfinite.export.plan import plan_export
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.models.checkpoint.stored_loading import load_stored, release_stored
from edgeinfinite.models.weights.row_modules import holds_stored
from edgeinfinite.runtime_py.benchmark.worker import own_peak_bytes
from tiny import tiny_family

LAYERS, WIDTH = 6, 1024
"""Of the larger model: 82 million weights, 165 MB in bfloat16."""


def bfloat16_checkpoint(folder: Path, dtype: torch.dtype = torch.bfloat16) -> Path:
    model = tiny_family("Qwen2, Qwen2.5", vocab_size=VOCABULARY).to(torch.bfloat16).to(dtype)
    tiny_checkpoint(folder, model=model)
    model.save_pretrained(folder, max_shard_size="16KB")
    return folder


def export(checkpoint: Path, output: Path, *options: str) -> Path:
    argv = ["export", "--model", str(checkpoint), "--output", str(output), *GEOMETRY, *options]
    assert main([*argv, "--policy", "carry", "--quantize", "int4"]) == 0
    return output


def test_the_artifact_is_that_of_the_same_weights_in_float32(tmp_path):
    halves = export(bfloat16_checkpoint(tmp_path / "halves" / "tiny"), tmp_path / "a")
    floats = bfloat16_checkpoint(tmp_path / "floats" / "tiny", torch.float32)
    floats = export(floats, tmp_path / "b")
    for name in ("weights.data", "prefill_segment.onnx", "decode_step.onnx"):
        assert (halves / name).read_bytes() == (floats / name).read_bytes(), name
    one, other = (json.loads((folder / "manifest.json").read_text()) for folder in (halves, floats))
    assert one["backbone"] == other["backbone"]  # its digest, too
    assert one["parity"].keys() == other["parity"].keys()
    for name, value in one["parity"].items():
        assert value == pytest.approx(other["parity"][name], rel=1e-2, abs=1e-5), name


def test_verify_finds_a_changed_checkpoint_and_a_changed_artifact(tmp_path):
    checkpoint = bfloat16_checkpoint(tmp_path / "tiny")
    artifact = export(checkpoint, tmp_path / "artifact")
    assert failed(artifact, checkpoint) == []
    other = bfloat16_checkpoint(tmp_path / "other" / "tiny")
    file = max(other.glob("model-*.safetensors"))
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 0x80  # the sign of a weight
    file.write_bytes(raw)
    assert "weights" in failed(artifact, other)
    change_codes(artifact)
    assert "parity:products" in failed(artifact, checkpoint)


def failed(artifact: Path, checkpoint: Path) -> list[str]:
    checks = verify_artifact(artifact, model=str(checkpoint))
    return [check.check for check in checks if not check.passed]


def change_codes(artifact: Path) -> None:
    """Changes a row of the last layer's `gate_proj`, with a checksum that fits."""
    graph = onnx.load(artifact / "prefill_segment.onnx", load_external_data=False).graph
    codes = [t for t in graph.initializer if "layers.1.mlp.module.gate_proj.codes" in t.name]
    where = {entry.key: entry.value for entry in codes[0].external_data}
    file, start = artifact / where["location"], int(where["offset"])
    raw = bytearray(file.read_bytes())
    for place in range(start, start + codes[0].dims[2]):
        raw[place] ^= 0x88
    file.write_bytes(raw)
    entry = msgspec.to_builtins(file_entry(file))
    edit_manifest(artifact, lambda fields: fields["files"].update({file.name: entry}))


def test_calibration_and_artifacts_of_floats_get_float32_weights(tmp_path):
    checkpoint = str(bfloat16_checkpoint(tmp_path / "tiny"))

    def stored(**options: object) -> bool:
        geometry = Geometry(segment_length=32, sink_length=4, window_length=8)
        asked = ExportOptions(checkpoint, tmp_path / "no", geometry=geometry, **options)  # type: ignore
        return holds_stored(plan_export(asked).backbone.model)

    assert stored(quantize="int4") and stored(quantize="int8")
    assert not stored(quantize="none")
    calibrated = QuantizationOptions(calibrate="default")
    assert not stored(quantize="int4", quantization=calibrated)
    assert not stored(quantize="int4", backend="executorch")


def test_what_was_read_is_given_back_while_weights_are_rounded(tmp_path, monkeypatch):
    model = load_stored(str(bfloat16_checkpoint(tmp_path / "tiny")), "main")
    wanted = quantize_weights(model, recipe_named("int4"))
    released = []

    def release(given):
        released.append(given)
        release_stored(given)

    monkeypatch.setattr(quantized_weights, "release_stored", release)
    monkeypatch.setattr(quantized_weights, "_READ_AT_ONCE", 1)
    found = quantize_weights(model, recipe_named("int4"))
    assert len(released) == len(found) > 1
    assert found.keys() == wanted.keys()
    for name, weight in found.items():
        assert torch.equal(weight.codes, wanted[name].codes), name
        assert torch.equal(weight.scales, wanted[name].scales), name


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_never_holds_the_weights_in_float32(tmp_path):
    tiny = bfloat16_checkpoint(tmp_path / "tiny")
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=8,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    large = LlamaForCausalLM(config).to(torch.bfloat16)
    weights = sum(parameter.numel() for parameter in large.parameters())
    checkpoint = tiny_checkpoint(tmp_path / "large", model=large)
    large.save_pretrained(checkpoint, max_shard_size="40MB")
    del large
    runs = [str(path) for path in (tiny, tmp_path / "a", checkpoint, tmp_path / "b")]
    command = [sys.executable, str(Path(__file__)), *runs]
    where = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=where)
    before, after = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    # 2 bytes for the checkpoint, 1 for codes, about 1.5 for graphs that are written. With float32
    # weights, and a float32 reference beside them, it is 4 + 4 + 1 and more.
    assert after - before < 6 * weights


def _peaks(tiny: str, first: str, large: str, second: str) -> None:
    """Prints the peak of memory after an export that brings in all code, and after a larger one."""
    torch.set_num_threads(1)
    for checkpoint, output in ((tiny, first), (large, second)):
        export(Path(checkpoint), Path(output))
        print(own_peak_bytes())


if __name__ == "__main__":
    _peaks(*sys.argv[1:])
