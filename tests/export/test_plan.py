"""The plan of an export, made before any work."""

from __future__ import annotations

import re

import pytest
from tiny_artifact import GEOMETRY, tiny_checkpoint
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig

from edgeinfinite.artifact.backends import BACKENDS
from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.plan import plan_export
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.runtime_py.session.state import State

CARRY = GeometryOptions("carry", 32, 4, 8, recall_slots=(32, 64))


def dry_run(model, output, *more: str) -> int:
    command = ["export", "--model", str(model), "--output", str(output), "--dry-run"]
    return main([*command, *GEOMETRY, *more])


def test_a_dry_run_needs_no_output_and_an_export_does(tmp_path, capsys):
    command = ["export", "--model", str(tiny_checkpoint(tmp_path / "tiny")), *GEOMETRY]
    assert main([*command, "--policy", "reencode", "--dry-run"]) == 0
    assert main(command) == 2
    assert "--output is required, unless --dry-run" in capsys.readouterr().err


def test_a_dry_run_prints_slots_and_bytes_and_writes_nothing(tmp_path, capsys):
    model, output = tiny_checkpoint(tmp_path / "tiny"), tmp_path / "artifact"
    slots = ("--policy", "carry", "--recall-slots", "32,64", "--scorer", "untrained")
    assert dry_run(model, output, *slots, "--quantize", "int8") == 0
    printed = capsys.readouterr().out
    assert re.search(r"^recall slots +64 in layers 1, 32 in layers 0$", printed, re.M)
    assert re.search(r"^policy +carry$", printed, re.M)
    assert re.search(r"^weights +int8, [\d.]+ MB$", printed, re.M)
    assert not output.exists()


@pytest.mark.parametrize("quantize", ["none", "int8", "int4"])
@pytest.mark.parametrize("backend", ["onnx", "executorch"])
def test_a_dry_run_needs_no_weights_and_says_the_same_sizes(tmp_path, capsys, quantize, backend):
    whole = tiny_checkpoint(tmp_path / "tiny")
    more = ("--policy", "carry", "--quantize", quantize, "--backend", backend)
    assert dry_run(whole, tmp_path / "artifact", *more) == 0
    table = capsys.readouterr().out
    (whole / "model.safetensors").unlink()
    assert dry_run(whole, tmp_path / "artifact", *more) == 0
    printed = capsys.readouterr()
    assert printed.out == table
    assert "note: tiny has no weights: sizes are those of its configuration" in printed.err


def test_what_has_no_weights_is_not_exported(tmp_path, capsys):
    folder = tiny_checkpoint(tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    capsys.readouterr()
    command = ["export", "--model", str(folder), "--output", str(tmp_path / "a"), *GEOMETRY]
    assert main([*command, "--policy", "carry"]) == 2
    error = capsys.readouterr().err
    assert "can't be loaded" in error and error.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_a_dry_run_of_experts_without_weights_says_their_sizes(tmp_path, capsys):
    folder = tiny_checkpoint(tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    MixtralConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        architectures=["MixtralForCausalLM"],
        max_position_embeddings=512,
    ).save_pretrained(folder)
    asked = folder, tmp_path / "artifact", "--policy", "carry", "--quantize", "int4"
    assert dry_run(*asked) == 0
    assert "MixtralForCausalLM" in capsys.readouterr().out


def test_a_dry_run_refuses_the_same_options_as_an_export(tmp_path, capsys):
    model = tiny_checkpoint(tmp_path / "tiny")
    assert dry_run(model, tmp_path / "artifact", "--state-mb", "nan") == 2
    assert "--state-mb is nan" in capsys.readouterr().err
    assert dry_run(model, tmp_path / "artifact", "--policy", "carry", "--recall-slots", "32") == 2
    assert "need a retention scorer" in capsys.readouterr().err
    assert dry_run(model, tmp_path / "artifact", "--max-mb", "1") == 2
    assert "for --quantize int4" in capsys.readouterr().err


def test_a_dry_run_refuses_a_model_that_the_back_end_cannot_export(tmp_path, capsys):
    model = tiny_checkpoint(tmp_path / "tiny")
    config = LlamaConfig.from_pretrained(model, head_dim=12)
    LlamaForCausalLM(config).save_pretrained(model)
    assert dry_run(model, tmp_path / "artifact") == 2
    assert "onnx can't attend with heads of 12 dimensions" in capsys.readouterr().err


def test_a_target_that_a_back_end_does_not_have_is_refused_with_those_it_has(tmp_path):
    for name, entry in BACKENDS.items():
        with pytest.raises(EdgeInfiniteError, match=f"choose one of {', '.join(entry.targets)}$"):
            plan_export(ExportOptions("any", tmp_path / "new", backend=name, target="dsp"))


def test_the_planned_bytes_equal_the_artifacts(tmp_path):
    model = str(tiny_checkpoint(tmp_path / "tiny"))
    options = ExportOptions(model, tmp_path / "artifact", geometry=CARRY, scorer="untrained")
    plan = plan_export(options)
    manifest = read_manifest(export_artifact(options))
    assert plan.state_bytes == State(manifest.state).nbytes
    # A scorer is stored in half precision where that loses nothing; the file is padded to pages.
    assert plan.weights_bytes() == pytest.approx(manifest.files["weights.data"].size, rel=0.25)
