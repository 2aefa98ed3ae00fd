"""transformers' own exporters, used as its users do, with the format `edgeinfinite`."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_artifact import tiny_checkpoint
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedModel
from transformers.exporters import AutoExportConfig, AutoHfExporter, ExportedModel

import edgeinfinite
from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.hf.config import EdgeInfiniteExportConfig
from edgeinfinite.export.hf.exporter import EdgeInfiniteExporter
from edgeinfinite.export.options import ExportOptions, QuantizationOptions
from edgeinfinite.models.geometry_options import GeometryOptions

SMALL = {"segment_length": 32, "sink_length": 4, "window_length": 24}
OPTIONS = {"export_format": "edgeinfinite", **SMALL}
PROMPT = torch.tensor([[0, *range(40, 60)]])


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    edgeinfinite.register_exporter()
    edgeinfinite.register_exporter()  # again: nothing happens


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("transformers") / "tiny")


def loaded(checkpoint: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(checkpoint)


def greedy(model: PreTrainedModel, prompt: torch.Tensor, count: int) -> list[int]:
    """The untouched model's own answer, without what ends it."""
    tokens = model.generate(prompt, max_new_tokens=count, do_sample=False)[0].tolist()
    return tokens[:-1] if tokens[-1] == model.generation_config.eos_token_id else tokens


@pytest.fixture(scope="module")
def exported(checkpoint: Path) -> ExportedModel:
    config = AutoExportConfig.from_dict(OPTIONS)
    exporter = AutoHfExporter.from_config(config)
    return exporter.export_for_generation(loaded(checkpoint), {"input_ids": PROMPT}, config)


@pytest.fixture(scope="module")
def folder(exported: ExportedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    saved = tmp_path_factory.mktemp("saved") / "artifact"
    exported.save_pretrained(saved)
    return saved


def test_what_was_saved_generates_what_the_untouched_model_does(
    checkpoint: Path, folder: Path
) -> None:
    again = ExportedModel.from_pretrained(folder, threads=1)
    mask = torch.ones_like(PROMPT)
    answer = again.runners["model"].generate(PROMPT, mask, max_new_tokens=24)
    expected = greedy(loaded(checkpoint), PROMPT, 24)
    assert len(expected) > PROMPT.shape[1] + 8, "the model has to say something"
    assert answer.tolist() == [expected]


def test_a_call_gives_the_last_tokens_logits(checkpoint: Path, exported: ExportedModel) -> None:
    found = exported(input_ids=PROMPT, attention_mask=torch.ones_like(PROMPT))
    with torch.no_grad():
        expected = loaded(checkpoint)(input_ids=PROMPT, logits_to_keep=1).logits
    assert isinstance(found, transformers.modeling_outputs.CausalLMOutput)
    torch.testing.assert_close(found.logits, expected, rtol=0, atol=1e-4)


def test_a_text_longer_than_the_cache_is_read(exported: ExportedModel) -> None:
    capacity = sum(SMALL.values())
    prompt = (torch.arange(3 * capacity) % 200 + 2)[None]
    assert exported(input_ids=prompt).logits.isfinite().all()


def test_the_folder_is_an_artifact(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = load_manifest(folder)
    assert manifest.backbone.name == "tiny"
    assert [getattr(manifest.geometry, name) for name in SMALL] == list(SMALL.values())
    command = ["generate", str(folder), "--prompt", "abc", "--max-new-tokens", "3", "--greedy"]
    assert main(command) == 0


def test_what_it_writes_names_no_path_of_this_machine(folder: Path, checkpoint: Path) -> None:
    for file in folder.iterdir():
        assert str(checkpoint.parent).encode() not in file.read_bytes(), file.name


def test_the_weights_are_those_in_memory(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    with torch.no_grad():
        model.lm_head.weight *= -1
    exported = EdgeInfiniteExporter().export(model, {}, OPTIONS)
    ours = exported.runners["model"].generate(PROMPT, max_new_tokens=6)
    assert ours.tolist() == [greedy(model, PROMPT, 6)]


def test_weights_that_transformers_leaves_out_are_refused(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(checkpoint)
    monkeypatch.setattr(model, "save_pretrained", loaded(checkpoint).save_pretrained)
    with torch.no_grad():
        model.lm_head.weight *= -1  # as an adapter would that isn't merged
    with pytest.raises(EdgeInfiniteError, match="has other weights than the model; merge"):
        EdgeInfiniteExporter().export(model, {}, OPTIONS)


def test_a_generation_config_that_is_given_goes_into_the_artifact(
    checkpoint: Path, tmp_path: Path
) -> None:
    model = loaded(checkpoint)
    ends = int(greedy(model, PROMPT, 4)[PROMPT.shape[1] + 2])
    given = GenerationConfig(eos_token_id=[1, ends], do_sample=False)
    exported = EdgeInfiniteExporter().export_for_generation(
        model, {}, OPTIONS, generation_config=given
    )
    exported.save_pretrained(tmp_path)
    load_manifest(tmp_path)  # its generation_config.json is still its own
    answer = ExportedModel.from_pretrained(tmp_path).runners["model"].generate(PROMPT)[0].tolist()
    assert answer == greedy(model, PROMPT, 4)[: PROMPT.shape[1] + 2]
    assert model.generation_config.eos_token_id == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"input_ids": PROMPT.expand(2, -1)}, r"one text at a time.*\[2, 21\]"),
        ({"input_ids": PROMPT[0]}, r"one text at a time.*\[21\]"),
        ({"input_ids": PROMPT, "attention_mask": PROMPT * 0}, "without padding"),
        ({"input_ids": PROMPT + 300}, "outside the vocabulary"),
    ],
)
def test_what_an_artifact_cannot_read_is_refused(
    exported: ExportedModel, wrong: dict[str, torch.Tensor], said: str
) -> None:
    with pytest.raises(EdgeInfiniteError, match=said):
        exported(**wrong)
    with pytest.raises(EdgeInfiniteError, match=said):
        exported.runners["model"].generate(**wrong)


def test_another_device_is_refused(exported: ExportedModel) -> None:
    with pytest.raises(EdgeInfiniteError, match="runs on the CPU; leave out the device cuda"):
        ExportedModel.to(exported, "cuda")


@pytest.mark.parametrize(
    ("inputs", "options", "said"),
    [
        ({"pixel_values": PROMPT}, {}, "leave out pixel_values"),
        ({}, {"policy": "reencode", "recall_slots": 4}, "reencode has no recall slots"),
        ({}, {"quantize": "int8", "max_mb": 3.0}, "are for --quantize int4"),
        ({}, {"tokenizer": "./nowhere"}, "nowhere has no tokenizer that can be loaded"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    checkpoint: Path, inputs: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(EdgeInfiniteError, match=said):
        EdgeInfiniteExporter().export(loaded(checkpoint), inputs, OPTIONS | options)


def test_a_model_of_no_checkpoint_needs_a_tokenizer(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    model.name_or_path = ""
    with pytest.raises(EdgeInfiniteError, match="give one in the configuration: tokenizer="):
        EdgeInfiniteExporter().export(model, {}, OPTIONS)
    exported = EdgeInfiniteExporter().export(model, {}, OPTIONS | {"tokenizer": str(checkpoint)})
    assert load_manifest(exported.program.folder).backbone.name == "LlamaForCausalLM"


def test_files_that_do_not_belong_together_are_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("export.json", "model.edgeinfinite"):
        (copy / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(EdgeInfiniteError, match=r"has no manifest\.json: of a repository"):
        EdgeInfiniteExporter.load_program(copy / "model.edgeinfinite")
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "model.edgeinfinite").write_text("0" * 64, encoding="ascii")
    with pytest.raises(EdgeInfiniteError, match=r"another artifact than model\.edgeinfinite"):
        ExportedModel.from_pretrained(copy)
    (copy / "weights.data").write_bytes(b"damaged")
    with pytest.raises(EdgeInfiniteError, match=r"weights\.data"):
        ExportedModel.from_pretrained(copy)


def test_a_transformers_without_the_hook_is_named_with_the_version_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = types.ModuleType("transformers.exporters")  # 5.22 has exporters and no hook
    monkeypatch.setitem(sys.modules, "transformers.exporters", older)
    ours = types.SimpleNamespace(__version__="5.22.0")
    monkeypatch.setattr("edgeinfinite.export.hf.registration.transformers", ours)
    with pytest.raises(EdgeInfiniteError) as raised:
        edgeinfinite.register_exporter()
    said = str(raised.value)
    assert "transformers 5.22.0 takes no exporters of others; 5.23 or newer does" in said
    assert "\n" not in said


def test_every_option_of_export_is_one_of_the_configuration() -> None:
    """But for what stands in the model in memory or its tokenizer, and for a .gguf file's."""
    given = {field.name for field in dataclasses.fields(EdgeInfiniteExportConfig)}
    kinds = (ExportOptions, GeometryOptions, QuantizationOptions)
    options = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    apart = {"model", "output", "geometry", "quantization", "pre_tokenizer", "chat_template"}
    assert given - {"export_format", "tokenizer"} == options - apart
    defaults = {f.name: f.default for kind in kinds for f in dataclasses.fields(kind)}
    for field in dataclasses.fields(EdgeInfiniteExportConfig):
        assert field.default == defaults.get(field.name, field.default), field.name


def test_what_is_recorded_has_no_path(tmp_path: Path) -> None:
    config = EdgeInfiniteExportConfig(gate=str(tmp_path / "gate.safetensors"), tokenizer="./here")
    recorded = json.loads(config.to_json_string())
    assert recorded["gate"] == "gate.safetensors" and "tokenizer" not in recorded
